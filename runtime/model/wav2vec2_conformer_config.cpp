#include "model/wav2vec2_conformer_config.h"

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"

namespace vkformer {
namespace {

using Positions = ConformerConfig::Positions;

constexpr int64_t kMostConformerKernel = 1024;
constexpr int64_t kMostShift = 65536;

// Only pre-norm layers have adapters of languages: the others ignore the key. Its null means none.
Status refuse_adapters(const JsonConfig& config, const ConformerConfig& c) {
  if (c.kind != ConformerConfig::Layers::kPre || !config.has("adapter_attn_dim")) return {};
  VKF_ASSIGN(const int64_t width, config.get_int("adapter_attn_dim"));
  return unsupported(message({"[adapter_attn_dim] is ", width, " in ", config.where(),
                              "; the adapters of languages inside layers are not implemented."}));
}

Status read_plain_positions(const JsonConfig& config, ConformerConfig& c) {
  c.positions = Positions::kNone;
  VKF_ASSIGN(const bool stable, config.get_bool_or("do_stable_layer_norm", false));
  c.kind = stable ? ConformerConfig::Layers::kPre : ConformerConfig::Layers::kPost;
  VKF_CHECK(refuse_adapters(config, c));
  c.position.width = c.width;
  c.position.activation = c.stem.activation;
  return read_position_conv(config, c.position);
}

// The buckets of distances whose bias layers gate, where they do.
Status read_gated_distances(const JsonConfig& config, T5Buckets& t5) {
  if (t5.buckets == 0) return {};
  VKF_ASSIGN(t5.buckets, get_size_or(config, "num_buckets", t5.buckets, kMostShift));
  VKF_ASSIGN(t5.max_distance,
             get_size_or(config, "max_bucket_distance", t5.max_distance, kMostShift));
  const Status fits = check_t5_buckets(t5);
  if (fits.ok()) return {};
  return invalid_file(
      message({"[num_buckets] is ", t5.buckets, " and [max_bucket_distance] ", t5.max_distance,
               " in ", config.where(), ". ", fits.error().message}));
}

Status read_layers(const JsonConfig& config, ConformerConfig& c) {
  VKF_ASSIGN(c.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(c.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(c.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_ASSIGN(const int64_t head, head_width(config, c.width, c.heads));
  VKF_ASSIGN(c.ffn, get_size_or(config, "intermediate_size", 3072, 4 * kMostWidth));
  VKF_ASSIGN(c.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(c.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_CHECK(read_gated_distances(config, c.gated));
  if (c.kind != ConformerConfig::Layers::kConformer) return read_plain_positions(config, c);
  VKF_ASSIGN(c.kernel, get_size_or(config, "conv_depthwise_kernel_size", 31, kMostConformerKernel));
  if (c.kernel % 2 == 0) {
    return invalid_file(message({"[conv_depthwise_kernel_size] in ", config.where(), " is ",
                                 c.kernel, ", but must be odd, so that it has a middle"}));
  }
  VKF_ASSIGN(c.base, config.get_double_or("rotary_embedding_base", 10000.0));
  c.positions = Positions::kByFile;
  if (!config.has("position_embeddings_type")) return {};
  VKF_ASSIGN(const std::string type, config.get_string("position_embeddings_type"));
  c.positions = type == "relative" ? Positions::kRelative
                : type == "rotary" ? Positions::kRotary
                                   : Positions::kNone;
  const int64_t pairs = c.positions == Positions::kRelative ? c.width : head;
  if (c.positions == Positions::kNone || pairs % 2 == 0) return {};
  return invalid_file(message({"[position_embeddings_type] in ", config.where(), " is '", type,
                               "', which turns pairs of columns, but there are ", pairs}));
}

Status read_head(const JsonConfig& config, const std::string& classes, ModelFacts& facts,
                 ConformerConfig& c) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, classes + "Model"));
  for (const char* key : {"add_adapter", "use_weighted_layer_sum"}) {
    VKF_ASSIGN(const bool on, config.get_bool_or(key, false));
    if (!on) continue;
    return unsupported(message({"[", key, "] is true in ", config.where(), "; the ", facts.family,
                                " family does not have it"}));
  }
  if (facts.architecture == classes + "Model") return {};
  if (facts.architecture == classes + "ForCTC") {
    facts.head = HeadKind::kCtc;
    VKF_ASSIGN(c.classes, get_size(config, "vocab_size", kMostVocabulary));
    facts.target_vocab = c.classes;
    VKF_ASSIGN(c.blank, config.get_int_or("pad_token_id", 0));
    c.head = "lm_head";
    return {};
  }
  if (facts.architecture == classes + "ForAudioFrameClassification") {
    facts.head = HeadKind::kTokens;
    VKF_ASSIGN(facts.labels, get_labels(config));
    c.classes = static_cast<int64_t>(facts.labels.size());
    c.head = "classifier";
    return {};
  }
  return unsupported(
      message({"[architectures] of ", config.where(), " names '", facts.architecture,
               "', whose head this family does not have; supported are the bare model, ", classes,
               "ForCTC and ", classes, "ForAudioFrameClassification"}));
}

}  // namespace

Status read_conformer(const JsonConfig& config, const std::string& classes, ModelFacts& facts,
                      ConformerConfig& result) {
  VKF_CHECK(read_head(config, classes, facts, result));
  VKF_CHECK(read_waveform_stem(config, result.stem));
  return read_layers(config, result);
}

}  // namespace vkformer
