// The explicit list of model families: one row each.
#include "base/check.h"
#include "base/message.h"
#include "model/albert.h"
#include "model/bart.h"
#include "model/bert.h"
#include "model/big_bird.h"
#include "model/bloom.h"
#include "model/cvt.h"
#include "model/deit.h"
#include "model/distilbert.h"
#include "model/electra.h"
#include "model/family_traits.h"
#include "model/gato.h"
#include "model/gpt2.h"
#include "model/gpt_neo.h"
#include "model/gpt_neox.h"
#include "model/led.h"
#include "model/linear_transformer.h"
#include "model/linformer.h"
#include "model/llama.h"
#include "model/longformer.h"
#include "model/m2m_100.h"
#include "model/marian.h"
#include "model/modernbert.h"
#include "model/nystromformer.h"
#include "model/opt.h"
#include "model/perceiver.h"
#include "model/performer.h"
#include "model/reformer.h"
#include "model/rnn_attention.h"
#include "model/roberta.h"
#include "model/sentence_files.h"
#include "model/swin.h"
#include "model/t5.h"
#include "model/transformer.h"
#include "model/vision_encoder_decoder.h"
#include "model/vit.h"
#include "model/wav2vec2_conformer.h"
#include "model/whisper.h"

namespace vkformer {
namespace {

struct FamilyRow {
  const char* model_type;  // as config.json spells it
  Result<std::unique_ptr<ModelFamily>> (*load)(const ModelFiles& files);
  FamilyTraits traits;
};

using Maps = FamilyTraits::Maps;
constexpr HeadKind kTextHeads[] = {HeadKind::kNone, HeadKind::kMasked, HeadKind::kSequence,
                                   HeadKind::kTokens, HeadKind::kSpans};
constexpr HeadKind kElectraHeads[] = {HeadKind::kNone,     HeadKind::kMasked,
                                      HeadKind::kSequence, HeadKind::kTokens,
                                      HeadKind::kSpans,    HeadKind::kDiscriminator};
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

// The traits are those of the family; what a single model has is in its ModelFacts.
constexpr FamilyRow kFamilies[] = {
    {"bert", load_bert, text_encoder("WordPiece")},
    {"distilbert", load_distilbert, text_encoder("WordPiece")},
    {"albert", load_albert, text_encoder("Unigram")},
    {"electra", load_electra, text_encoder("WordPiece", kElectraHeads)},
    {"modernbert", load_modernbert, text_encoder("BPE")},
    {"roberta", load_roberta, text_encoder("BPE")},
    {"xlm-roberta", load_roberta, text_encoder("Unigram")},
    {"longformer", load_longformer, text_encoder("BPE")},
    {"big_bird", load_big_bird, text_encoder("Unigram")},
    {"nystromformer", load_nystromformer, text_encoder("Unigram")},
    {"reformer", load_reformer, kReformer},
    {"marian", load_marian, encoder_decoder("Unigram", kLanguageOnly)},
    {"bart", load_bart, encoder_decoder("BPE")},
    {"mbart", load_mbart, encoder_decoder("Unigram")},
    {"led", load_led, encoder_decoder("BPE")},
    {"m2m_100", load_m2m_100, encoder_decoder("BPE")},
    {"t5", load_t5, encoder_decoder("Unigram")},
    {"mt5", load_mt5, encoder_decoder("Unigram")},
    {"whisper", load_whisper,
     encoder_decoder("log-mel features; BPE", kLanguageHeads, SourceKind::kFeatures)},
    {"bloom", load_bloom, decoder("BPE")},
    {"gpt2", load_gpt2, decoder("BPE")},
    {"gpt_neo", load_gpt_neo, decoder("BPE")},
    {"gpt_neox", load_gpt_neox, decoder("BPE")},
    {"llama", load_llama, decoder("BPE")},
    {"mistral", load_mistral, decoder("BPE")},
    {"qwen2", load_qwen2, decoder("BPE")},
    {"gemma", load_gemma, decoder("BPE", kLanguageOnly)},
    {"gemma2", load_gemma2, decoder("BPE", kLanguageOnly)},
    {"opt", load_opt, decoder("BPE")},
    {"linear_transformer", load_linear_transformer, decoder("token ids")},
    {"linformer", load_linformer, text_encoder("token ids", kMaskedHeads)},
    {"performer", load_performer, decoder("token ids")},
    {"rnn_attention", load_rnn_attention, encoder_decoder("WordLevel", kLanguageOnly)},
    {"transformer", load_transformer, encoder_decoder("WordLevel", kLanguageOnly)},
    {"perceiver", load_perceiver, array_encoder("arrays, token ids or pictures", kPerceiverHeads)},
    {"wav2vec2-conformer", load_wav2vec2_conformer, array_encoder("waveforms", kFrameHeads)},
    {"gato", load_gato, array_encoder("observations as arrays", kLanguageOnly)},
    {"vit", load_vit, picture_encoder(Maps::kLayers)},
    {"deit", load_deit, picture_encoder(Maps::kLayers)},
    {"swin", load_swin, picture_encoder(Maps::kStages)},
    {"cvt", load_cvt, picture_encoder(Maps::kNone)},
    {"vision-encoder-decoder", load_vision_encoder_decoder,
     encoder_decoder("pictures; BPE", kLanguageOnly, SourceKind::kPictures)},
};

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
    if (type == row.model_type) return row.load(files);
  }
  std::string known;
  for (const std::string& name : family_names()) known += (known.empty() ? "" : ", ") + name;
  return unsupported(message({"[model_type] '", type, "' of ", files.config.where(),
                              " is not supported yet; supported are ", known}));
}

}  // namespace vkformer
