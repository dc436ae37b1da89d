// What the rows of family_list.def say of a family, and the family of a directory.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/quantization_method.h"
#include "model/family_list.h"
#include "model/family_traits.h"
#include "model/nearest_family.h"
#include "model/sentence_files.h"
#include "weights/weight_table.h"

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
constexpr HeadKind kNoAnswerHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence,
                                       HeadKind::kTokens};
constexpr HeadKind kNoMaskedHeads[] = {HeadKind::kNone, HeadKind::kSequence, HeadKind::kTokens,
                                       HeadKind::kSpans};
constexpr HeadKind kCamembertHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence};
constexpr HeadKind kMaskedHeads[] = {HeadKind::kNone, HeadKind::kMasked};
constexpr HeadKind kReformerHeads[] = {HeadKind::kNone, HeadKind::kLanguage, HeadKind::kMasked,
                                       HeadKind::kSequence, HeadKind::kSpans};
constexpr HeadKind kPerceiverHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence};
constexpr HeadKind kFrameHeads[] = {HeadKind::kNone, HeadKind::kTokens, HeadKind::kCtc};
constexpr HeadKind kHubertHeads[] = {HeadKind::kNone, HeadKind::kCtc};
constexpr HeadKind kPictureHeads[] = {HeadKind::kNone, HeadKind::kSequence};
constexpr HeadKind kLanguageHeads[] = {HeadKind::kNone, HeadKind::kLanguage};
constexpr HeadKind kDecoderHeads[] = {HeadKind::kNone, HeadKind::kLanguage, HeadKind::kSequence};
constexpr HeadKind kWritingHeads[] = {HeadKind::kLanguage, HeadKind::kSequence};
constexpr HeadKind kLanguageOnly[] = {HeadKind::kLanguage};
constexpr HeadKind kBareOnly[] = {HeadKind::kNone};
constexpr HeadKind kObjectHeads[] = {HeadKind::kNone, HeadKind::kObjects};
constexpr HeadKind kDepthHead[] = {HeadKind::kDepth};
constexpr HeadKind kEntityHead[] = {HeadKind::kEntities};
constexpr HeadKind kSegmentationHead[] = {HeadKind::kSegmentation};
constexpr HeadKind kSimilarityHeads[] = {HeadKind::kSimilarity};

constexpr FamilyTraits text_encoder(const char* inputs,
                                    std::span<const HeadKind> heads = kTextHeads) {
  return {.kind = ModelKind::kEncoder, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits picture_encoder(Maps maps, std::span<const HeadKind> heads = kPictureHeads) {
  return {.kind = ModelKind::kEncoder,
          .source = SourceKind::kPictures,
          .heads = heads,
          .maps = maps,
          .inputs = "pictures"};
}
constexpr FamilyTraits array_encoder(const char* inputs, std::span<const HeadKind> heads) {
  return {
      .kind = ModelKind::kEncoder, .source = SourceKind::kArrays, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits waveform_encoder(std::span<const HeadKind> heads = kFrameHeads) {
  return {.kind = ModelKind::kEncoder,
          .source = SourceKind::kWaveform,
          .heads = heads,
          .inputs = "waveforms"};
}
constexpr FamilyTraits decoder(const char* inputs,
                               std::span<const HeadKind> heads = kDecoderHeads) {
  return {.kind = ModelKind::kDecoder, .heads = heads, .inputs = inputs};
}
constexpr FamilyTraits encoder_decoder(const char* inputs,
                                       std::span<const HeadKind> heads = kLanguageHeads,
                                       SourceKind source = SourceKind::kTokens) {
  return {.kind = ModelKind::kEncoderDecoder, .source = source, .heads = heads, .inputs = inputs};
}

constexpr FamilyTraits kPictureText = {.kind = ModelKind::kEncoder,
                                       .source = SourceKind::kArrays,
                                       .heads = kSimilarityHeads,
                                       .maps = Maps::kNone,
                                       .inputs = "pictures and texts"};
constexpr HeadKind kCtcHead[] = {HeadKind::kCtc};
constexpr FamilyTraits kHearing = {.kind = ModelKind::kEncoder,
                                   .source = SourceKind::kFeatures,
                                   .heads = kCtcHead,
                                   .inputs = "log-mel features; BPE"};
constexpr FamilyTraits kHearingBare = {.kind = ModelKind::kEncoder,
                                       .source = SourceKind::kFeatures,
                                       .heads = kBareOnly,
                                       .inputs = "log-mel features"};
constexpr HeadKind kSpeechHeads[] = {HeadKind::kSpeech};
constexpr FamilyTraits kSpeaking = {
    .kind = ModelKind::kEncoder, .heads = kSpeechHeads, .inputs = "letters or phonemes"};
constexpr FamilyTraits kMamba = {
    .kind = ModelKind::kDecoder, .heads = kLanguageHeads, .maps = Maps::kNone, .inputs = "BPE"};
constexpr FamilyTraits kReformer = {.heads = kReformerHeads, .maps = Maps::kNone, .inputs = "BPE"};

constexpr FamilyRow kFamilies[] = {
#define VKF_FAMILY(model_type, load, ...) {model_type, load, __VA_ARGS__},
#include "model/family_list.def"
#undef VKF_FAMILY
};

// The tensors that a family would read of a model that is not its own; an error where it cannot
// read the configuration.
Result<FamilyTensors> tensors_of(const FamilyRow& row, const ModelFiles& files,
                                 const Checkpoint& checkpoint) {
  VKF_ASSIGN(const std::unique_ptr<ModelFamily> family, row.load(files));
  // Some families compute a table of positions, which for a question of names is not worth seconds.
  constexpr int64_t kMostTable = int64_t{1} << 24;
  if (family->facts().width > kMostTable / std::max<int64_t>(1, family->facts().max_source)) {
    return FamilyTensors{row.model_type, {}, {}};
  }
  VKF_CHECK(family->prepare(checkpoint));
  VKF_ASSIGN(WeightTable table, family->weight_table(checkpoint));
  const std::set<std::string> names = tensor_names(table);
  return FamilyTensors{row.model_type, {names.begin(), names.end()}, std::move(table.ignored)};
}

// What an unknown model_type is told beside the list of those that are known.
std::string nearest_family(const std::string& type, const ModelFiles& files,
                           const FileStore& store) {
  const Result<Checkpoint> checkpoint = Checkpoint::open_store(store);
  std::vector<FamilyTensors> known;
  for (const FamilyRow& row : kFamilies) {
    known.push_back({row.model_type, {}, {}});
    if (!checkpoint) continue;
    Result<FamilyTensors> tensors = tensors_of(row, files, *checkpoint);
    if (tensors) known.back() = std::move(*tensors);
  }
  return nearest_family_text(type, known,
                             checkpoint ? checkpoint->names() : std::vector<std::string>());
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
  VKF_ASSIGN(files.config, JsonConfig::load_from(store, config_name(store)));
  if (store.has("generation_config.json")) {
    VKF_ASSIGN(files.generation, JsonConfig::load_from(store, "generation_config.json"));
  }
  VKF_ASSIGN(files.sentence, read_sentence_files(store));
  // The library gliner writes one of several values, or none.
  const bool gliner = config_name(store) == std::string_view(kGlinerConfig);
  VKF_ASSIGN(std::string type,
             gliner ? std::string("gliner") : files.config.get_string("model_type"));
  for (const FamilyRow& row : kFamilies) {
    if (type != row.model_type) continue;
    VKF_CHECK(read_quantization(files.config));
    return row.load(files);
  }
  const std::string nearest = nearest_family(type, files, store);
  return unsupported(message({"[model_type] '", type, "' of ", files.config.where(),
                              " is not supported yet. ", nearest, nearest.empty() ? "" : " ",
                              "Supported are ", name_list(family_names()), "."}));
}

}  // namespace vkformer
