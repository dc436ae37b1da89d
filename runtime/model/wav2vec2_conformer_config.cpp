#include "model/wav2vec2_conformer_config.h"

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"

namespace vkformer {
namespace {

using Positions = ConformerConfig::Positions;

constexpr int64_t kMostConformerKernel = 1024;
constexpr size_t kMostConvolutions = 64;
constexpr int64_t kMostShift = 65536;

Status read_convs(const JsonConfig& config, ConformerConfig& c) {
  VKF_ASSIGN(const auto widths, config.get_int_list_or("conv_dim", std::vector<int64_t>(7, 512)));
  VKF_ASSIGN(const auto kernels, config.get_int_list_or("conv_kernel", {10, 3, 3, 3, 3, 2, 2}));
  VKF_ASSIGN(const auto strides, config.get_int_list_or("conv_stride", {5, 2, 2, 2, 2, 2, 2}));
  if (widths.empty() || widths.size() > kMostConvolutions || kernels.size() != widths.size() ||
      strides.size() != widths.size()) {
    return invalid_file(
        message({"[conv_dim] in ", config.where(), " has ", widths.size(),
                 " values, [conv_kernel] ", kernels.size(), " and [conv_stride] ", strides.size(),
                 ", but there must be as many of each, from 1 to ", kMostConvolutions}));
  }
  int64_t in = 1;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool fits = widths[i] >= 1 && widths[i] <= kMostWidth && kernels[i] >= 1 &&
                      kernels[i] <= kMostConformerKernel && strides[i] >= 1 &&
                      strides[i] <= kMostConformerKernel;
    if (!fits) {
      return invalid_file(
          message({"[conv_dim] in ", config.where(), " has a convolution of ", widths[i],
                   " channels with a kernel of ", kernels[i], " and a stride of ", strides[i],
                   ", but must lie between 1 and ", kMostWidth, " channels and ",
                   kMostConformerKernel, " samples"}));
    }
    c.convs.push_back({in, widths[i], kernels[i], strides[i]});
    in = widths[i];
  }
  VKF_ASSIGN(const bool bias, config.get_bool_or("conv_bias", false));
  if (bias) c.bias = ConformerConfig::ConvBias::kYes;
  VKF_ASSIGN(c.conv_activation, get_activation(config, "feat_extract_activation", "gelu"));
  VKF_ASSIGN(const std::string norm, config.get_string_or("feat_extract_norm", "group"));
  if (norm == "layer") c.norm = ConformerConfig::ConvNorm::kLayer;
  if (norm == "layer" || norm == "group") return {};
  return invalid_file(message(
      {"[feat_extract_norm] in ", config.where(), " is '", norm, "', but must be group or layer"}));
}

// Only pre-norm layers have adapters of languages: the others ignore the key. Its null means none.
Status refuse_adapters(const JsonConfig& config, const ConformerConfig& c) {
  if (c.kind != ConformerConfig::Layers::kPre || !config.has("adapter_attn_dim")) return {};
  VKF_ASSIGN(const int64_t width, config.get_int("adapter_attn_dim"));
  return unsupported(message({"[adapter_attn_dim] is ", width, " in ", config.where(),
                              "; the adapters of languages inside layers are not implemented."}));
}

Status read_position_convolution(const JsonConfig& config, ConformerConfig& c) {
  c.positions = Positions::kNone;
  VKF_ASSIGN(const bool stable, config.get_bool_or("do_stable_layer_norm", false));
  c.kind = stable ? ConformerConfig::Layers::kPre : ConformerConfig::Layers::kPost;
  VKF_CHECK(refuse_adapters(config, c));
  VKF_ASSIGN(c.kernel, get_size_or(config, "num_conv_pos_embeddings", 128, kMostConformerKernel));
  VKF_ASSIGN(c.groups, get_size_or(config, "num_conv_pos_embedding_groups", 16, kMostWidth));
  if (c.width % c.groups == 0) return {};
  return invalid_file(message({"[num_conv_pos_embedding_groups] in ", config.where(), " is ",
                               c.groups, ", but must divide the hidden_size of ", c.width, "."}));
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
  if (c.kind != ConformerConfig::Layers::kConformer) return read_position_convolution(config, c);
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
  facts.head = HeadKind::kTokens;
  if (facts.architecture == classes + "ForCTC") {
    VKF_ASSIGN(c.classes, get_size(config, "vocab_size", kMostVocabulary));
    facts.target_vocab = c.classes;
    c.head = "lm_head";
    return {};
  }
  if (facts.architecture == classes + "ForAudioFrameClassification") {
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
  VKF_CHECK(read_convs(config, result));
  return read_layers(config, result);
}

}  // namespace vkformer
