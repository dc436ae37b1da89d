// What the rows of family_list.def say of a family, and the family of a directory.
#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "model/family_list.h"
#include "model/family_traits.h"
#include "model/sentence_files.h"

namespace vkformer {
namespace {

struct FamilyRow {
  const char* model_type;  // as config.json spells it
  Result<std::unique_ptr<ModelFamily>> (*load)(const ModelFiles& files);
  FamilyTraits traits;
};

using Maps = MapCoverage;
constexpr HeadKind kTextHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence,
                                   HeadKind::kTokens, HeadKind::kSpans};
constexpr HeadKind kElectraHeads[] = {HeadKind::kNone,     HeadKind::kMasked,
                                      HeadKind::kSequence, HeadKind::kTokens,
                                      HeadKind::kSpans,    HeadKind::kDiscriminator};
constexpr HeadKind kCamembertHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence};
constexpr HeadKind kMaskedHeads[] = {HeadKind::kNone, HeadKind::kMasked};
constexpr HeadKind kReformerHeads[] = {HeadKind::kNone, HeadKind::kLanguage, HeadKind::kMasked,
                                       HeadKind::kSequence, HeadKind::kSpans};
constexpr HeadKind kPerceiverHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence};
constexpr HeadKind kFrameHeads[] = {HeadKind::kNone, HeadKind::kTokens};
constexpr HeadKind kPictureHeads[] = {HeadKind::kNone, HeadKind::kSequence};
constexpr HeadKind kLanguageHeads[] = {HeadKind::kNone, HeadKind::kLanguage};
constexpr HeadKind kLanguageOnly[] = {HeadKind::kLanguage};

constexpr FamilyTraits text_encoder(const char* inputs,
                                    std::span<const HeadKind> heads = kTextHeads) {
  return {.kind = ModelKind::kEncoder, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits picture_encoder(Maps maps) {
  return {.kind = ModelKind::kEncoder,
          .source = SourceKind::kPictures,
          .heads = kPictureHeads,
          .maps = maps,
          .inputs = "pictures"};
}
constexpr FamilyTraits array_encoder(const char* inputs, std::span<const HeadKind> heads) {
  return {
      .kind = ModelKind::kEncoder, .source = SourceKind::kArrays, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits decoder(const char* inputs,
                               std::span<const HeadKind> heads = kLanguageHeads) {
  return {.kind = ModelKind::kDecoder, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits encoder_decoder(const char* inputs,
                                       std::span<const HeadKind> heads = kLanguageHeads,
                                       SourceKind source = SourceKind::kTokens) {
  return {.kind = ModelKind::kEncoderDecoder, .source = source, .heads = heads, .inputs = inputs};
}

constexpr FamilyTraits kReformer = {.heads = kReformerHeads, .maps = Maps::kNone, .inputs = "BPE"};

constexpr FamilyRow kFamilies[] = {
#define VKF_FAMILY(model_type, load, ...) {model_type, load, __VA_ARGS__},
#include "model/family_list.def"
#undef VKF_FAMILY
};

// Weights in another library's packing have other names and types than the family's own.
Status refuse_quantized(const JsonConfig& config) {
  const std::string key = "quantization_config";
  if (!config.has(key)) return {};
  const JsonConfig settings = config.object(key);
  VKF_CHECK(settings.status());
  VKF_ASSIGN(const std::string method, settings.get_string_or("quant_method", "an unnamed method"));
  return unsupported(message(
      {"[", key, "] in ", config.where(), " says that the weights are quantized by ", method,
       ", which is not supported; take the model as it was before, and make it small with "
       "`vkformer quantize` or --weights."}));
}

}  // namespace

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyRow& row : kFamilies) names.emplace_back(row.model_type);
  return names;
}

std::vector<ListedFamily> listed_families() {
  std::vector<ListedFamily> families;
  for (const FamilyRow& row : kFamilies) families.push_back({row.model_type, row.traits});
  return families;
}

Result<std::unique_ptr<ModelFamily>> load_family(const FileStore& store) {
  ModelFiles files;
  VKF_ASSIGN(files.config, JsonConfig::load_from(store, "config.json"));
  if (store.has("generation_config.json")) {
    VKF_ASSIGN(files.generation, JsonConfig::load_from(store, "generation_config.json"));
  }
  VKF_ASSIGN(files.sentence, read_sentence_files(store));
  VKF_ASSIGN(std::string type, files.config.get_string("model_type"));
  for (const FamilyRow& row : kFamilies) {
    if (type != row.model_type) continue;
    VKF_CHECK(refuse_quantized(files.config));
    return row.load(files);
  }
  return unsupported(message({"[model_type] '", type, "' of ", files.config.where(),
                              " is not supported yet; supported are ", name_list(family_names())}));
}

}  // namespace vkformer
