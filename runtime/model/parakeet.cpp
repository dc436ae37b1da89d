// Parakeet (NVIDIA NeMo): a Fast Conformer (Rekesh et al., 2023). Convolutions make a frame of
// eight frames of features. Layers of attention with relative positions and convolution follow. A
// model with such a head gives a token for each frame (Graves et al., 2006).
#include <bit>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/conformer_layer.h"
#include "model/blocks/feature_map.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/weight_rows.h"
#include "ops/conv.h"
#include "ops/unfold.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kSubsamplingKernel = 3;
constexpr int64_t kSubsamplingStride = 2;
constexpr int64_t kMostHalvings = 6;
constexpr int64_t kMostBands = 1024;
constexpr int64_t kMostDepthwise = 1025;

struct ParakeetConfig {
  ConformerLayer layer;
  int64_t layers = 0;
  int64_t bands = 0;  // of features

  // Of the convolutions that come first. Each stage halves frames and bands.
  int64_t channels = 0;
  int64_t stages = 0;
  float scale = 1.0f;  // of their result

  int64_t positions = 0;  // frames that layers see, at most
  int64_t classes = 0;    // of the head; 0: none
  int64_t blank = 0;

  int64_t factor() const { return int64_t{1} << stages; }
};

std::string stage_row(int64_t stage) {
  return "subsampling." + std::to_string(stage);
}

class Parakeet : public ModelFamily {
 public:
  Parakeet(ModelFacts facts, ParakeetConfig config)
      : facts_(std::move(facts)), c_(std::move(config)) {
    generation_.pad = c_.blank;
  }

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  std::vector<std::string> input_names() const override { return {"attention_mask"}; }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  Status add_subsampling_rows(const Checkpoint& checkpoint, WeightTable& table) const;
  Result<FeatureMap> subsample(ModelBuilder& builder, FeatureMap x) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  ParakeetConfig c_;
  std::string prefix_;  // of this file
};

Status Parakeet::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, "encoder.", "subsampling.linear.weight");
  // Configurations of the first versions do not say whether convolutions have biases.
  const std::string bias = prefix_ + "layers.0." + c_.layer.names.gate + ".bias";
  c_.layer.conv =
      checkpoint.find(bias) == nullptr ? ConformerLayer::Biases::kNo : ConformerLayer::Biases::kYes;
  return {};
}

Status Parakeet::add_subsampling_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const int64_t c = c_.channels, square = kSubsamplingKernel * kSubsamplingKernel;
  const std::string from = prefix_ + "subsampling.";
  table.rows.push_back(linear_row(stage_row(0), {from + "layers.0"}, c, square));
  for (int64_t i = 1; i < c_.stages; ++i) {
    // Modules of a stage: depthwise, pointwise, activation.
    const std::string depthwise = from + "layers." + std::to_string(3 * i - 1);
    VKF_ASSIGN(const std::vector<float> weight,
               read_floats(checkpoint, depthwise + ".weight",
                           {c, 1, kSubsamplingKernel, kSubsamplingKernel}));
    VKF_ASSIGN(const std::vector<float> bias, read_floats(checkpoint, depthwise + ".bias", {c}));
    VKF_ASSIGN(std::vector<float> packed,
               pack_conv({.name = depthwise, .out = c, .weight = weight, .bias = bias}));
    table.rows.push_back(
        computed_row(stage_row(i) + ".depthwise", std::move(packed), c, square + 1));
    table.rows.push_back(
        linear_row(stage_row(i), {from + "layers." + std::to_string(3 * i)}, c, c));
  }
  const int64_t columns = c * (c_.bands / c_.factor());
  table.rows.push_back(
      linear_row("subsampling.linear", {from + "linear"}, c_.layer.width, columns));
  table.rows.back().bias_scale = c_.scale;
  return {};
}

Result<WeightTable> Parakeet::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  VKF_CHECK(add_subsampling_rows(checkpoint, table));
  for (int64_t i = 0; i < c_.layers; ++i) {
    const std::string from = prefix_ + "layers." + std::to_string(i) + ".";
    VKF_CHECK(add_conformer_rows(checkpoint, c_.layer, i, from, table));
  }
  if (c_.classes > 0) {
    table.rows.push_back(linear_row("head", {"ctc_head"}, c_.classes, c_.layer.width));
  }
  // Read by pack_conv and add_conformer_rows, or used in training only.
  table.ignored = {"*subsampling.layers.*", "*.conv.norm.*",       "*.conv.depthwise_conv.*",
                   "*.num_batches_tracked", "*encode_positions.*", "ctc_head.*"};
  return table;
}

Status Parakeet::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  const Shape& features = inputs.at("input_features").shape;
  const int64_t frames = features[1];
  int64_t left = frames;
  for (int64_t i = 0; i < c_.stages; ++i) left = (left - 1) / kSubsamplingStride + 1;
  if (left > c_.positions) {
    return invalid_argument(message({"[input_features] has ", frames, " frames, of which ", left,
                                     " are left for the layers; the model takes ", c_.positions,
                                     ". Cut the recording into shorter ones."}));
  }
  result.shape.source = frames;
  const auto mask = inputs.find("attention_mask");
  if (mask == inputs.end()) return {};
  if (mask->second.shape != Shape{features[0], frames}) {
    return invalid_argument(
        message({"[attention_mask] has shape ", shape_text(mask->second.shape),
                 ", but input_features has frames ", shape_text({features[0], frames}), "."}));
  }
  VKF_ASSIGN(const std::vector<uint8_t> kept, mask_flags("attention_mask", mask->second));
  for (const uint8_t flag : kept) {
    if (flag != 0) continue;
    return unsupported(
        "[attention_mask] masks frames, which this family does not; give the frames of each "
        "recording alone, without those that are masked.");
  }
  return {};
}

Result<FeatureMap> Parakeet::subsample(ModelBuilder& b, FeatureMap x) const {
  const LinearAttrs relu{.activation = ActivationKind::kRelu};
  VKF_ASSIGN(x,
             add_feature_conv(b, {stage_row(0), kSubsamplingKernel, kSubsamplingStride}, x, relu));
  for (int64_t i = 1; i < c_.stages; ++i) {
    b.graph().set_scope(stage_row(i) + ".depthwise");
    VKF_ASSIGN(const TensorId table, b.table(stage_row(i) + ".depthwise"));
    const ConvAttrs conv{.source = feature_source(x.grid),
                         .window = feature_window(kSubsamplingKernel, kSubsamplingStride),
                         .groups = u32(c_.channels)};
    VKF_ASSIGN(x.states, add_conv(b.graph(), x.states, table, conv));
    x.grid = grid_after(x.grid, kSubsamplingKernel, kSubsamplingStride);
    VKF_ASSIGN(x.states, add_named_linear(b, stage_row(i), x.states, relu));
  }
  return x;
}

Status Parakeet::build_forward(ModelBuilder& b, const ForwardShape& shape,
                               const ForwardTaps& taps) const {
  Graph& g = b.graph();
  const GridSize grid{shape.source, c_.bands};
  const TensorId features =
      g.add_external("input_features", DType::kF32, {shape.batch, grid.count(), 1});
  b.feed("input_features", features);
  VKF_ASSIGN(const FeatureMap map, subsample(b, {features, grid}));
  // A frame is its bands of all channels, channel by channel.
  g.set_scope("subsampling.frames");
  ConvWindow whole;
  whole.kernel_width = whole.stride_width = u32(map.grid.width);
  VKF_ASSIGN(TensorId x,
             add_unfold(g, map.states, {.source = feature_source(map.grid), .window = whole}));
  VKF_ASSIGN(x, add_named_linear(b, "subsampling.linear", x, {.alpha = c_.scale}));
  const ConformerPass pass{b, shape.batch, map.grid.height, kNoTensor, taps};
  for (int64_t i = 0; i < c_.layers; ++i) {
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_conformer_layer(pass, c_.layer, i, x));
  }
  b.mark_output(x, "last_hidden_state");
  if (c_.classes == 0) return {};
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "head", x));
  b.mark_output(logits, "logits");
  return {};
}

// Names of a layer in files.
ConformerNames parakeet_names() {
  ConformerNames names;
  for (size_t i = 0; i < 2; ++i) {
    const std::string ffn = "feed_forward" + std::to_string(i + 1);
    names.ffn_norm[i] = "norm_" + ffn;
    names.ffn_up[i] = ffn + ".linear1";
    names.ffn_down[i] = ffn + ".linear2";
  }
  names.attention_norm = "norm_self_att";
  names.q = "self_attn.q_proj";
  names.k = "self_attn.k_proj";
  names.v = "self_attn.v_proj";
  names.out = "self_attn.o_proj";
  names.u = "self_attn.bias_u";
  names.v_bias = "self_attn.bias_v";
  names.positions = "self_attn.relative_k_proj";
  names.conv_norm = "norm_conv";
  names.gate = "conv.pointwise_conv1";
  names.depthwise = "conv.depthwise_conv";
  names.batch_norm = "conv.norm";
  names.conv_out = "conv.pointwise_conv2";
  names.norm = "norm_out";
  return names;
}

// A size that only one value of is known.
Status check_only(const JsonConfig& config, const char* key, int64_t known) {
  VKF_ASSIGN(const int64_t given, config.get_int_or(key, known));
  if (given == known) return {};
  return unsupported(
      message({"[", key, "] in ", config.where(), " is ", given, "; supported is ", known, "."}));
}

Status read_subsampling(const JsonConfig& config, ParakeetConfig& c) {
  VKF_CHECK(check_only(config, "subsampling_conv_kernel_size", kSubsamplingKernel));
  VKF_CHECK(check_only(config, "subsampling_conv_stride", kSubsamplingStride));
  VKF_ASSIGN(const int64_t factor,
             get_size_or(config, "subsampling_factor", 8, int64_t{1} << kMostHalvings));
  VKF_ASSIGN(c.bands, get_size_or(config, "num_mel_bins", 80, kMostBands));
  if (factor < 2 || !std::has_single_bit(static_cast<uint64_t>(factor)) || c.bands % factor != 0) {
    return invalid_file(
        message({"[subsampling_factor] in ", config.where(), " is ", factor,
                 "; it must be a power of 2 from 2 to ", int64_t{1} << kMostHalvings,
                 " that divides the ", c.bands, " of num_mel_bins."}));
  }
  c.stages = std::countr_zero(static_cast<uint64_t>(factor));
  VKF_ASSIGN(c.channels, get_size_or(config, "subsampling_conv_channels", 256, kMostWidth));
  return {};
}

Status read_parakeet_encoder(const JsonConfig& config, ParakeetConfig& c) {
  ConformerLayer& layer = c.layer;
  layer.names = parakeet_names();
  VKF_ASSIGN(layer.width, get_size_or(config, "hidden_size", 1024, kMostWidth));
  VKF_ASSIGN(layer.heads, get_size_or(config, "num_attention_heads", 8, kMostWidth));
  VKF_CHECK(head_width(config, layer.width, layer.heads));
  VKF_CHECK(check_only(config, "num_key_value_heads", layer.heads));
  if (layer.width % 2 != 0) {
    return invalid_file(message({"[hidden_size] in ", config.where(), " is ", layer.width,
                                 ", but must be even: relative positions are pairs."}));
  }
  VKF_ASSIGN(c.layers, get_size_or(config, "num_hidden_layers", 24, kMostLayers));
  VKF_ASSIGN(layer.ffn, get_size_or(config, "intermediate_size", 4096, 4 * kMostWidth));
  VKF_ASSIGN(layer.activation, get_activation(config, "hidden_act", "silu"));
  VKF_ASSIGN(layer.kernel, get_size_or(config, "conv_kernel_size", 9, kMostDepthwise));
  if (layer.kernel % 2 == 0) {
    return invalid_file(message({"[conv_kernel_size] in ", config.where(), " is ", layer.kernel,
                                 ", but must be odd, so that it has a middle."}));
  }
  VKF_ASSIGN(const bool biased, config.get_bool_or("attention_bias", true));
  layer.linear = biased ? ConformerLayer::Biases::kYes : ConformerLayer::Biases::kNo;
  VKF_ASSIGN(c.positions, get_size_or(config, "max_position_embeddings", 5000, kMostPositions));
  VKF_ASSIGN(const bool scales, config.get_bool_or("scale_input", true));
  if (scales) c.scale = static_cast<float>(std::sqrt(static_cast<double>(layer.width)));
  return read_subsampling(config, c);
}

std::unique_ptr<ModelFamily> make_parakeet(ModelFacts facts, ParakeetConfig c) {
  facts.kind = ModelKind::kEncoder;
  facts.source = SourceKind::kFeatures;
  facts.width = c.layer.width;
  facts.encoder_layers = c.layers;
  facts.encoder_heads = c.layer.heads;
  facts.grid.width = c.bands;
  facts.max_source = c.positions * c.factor();
  return std::unique_ptr<ModelFamily>(new Parakeet(std::move(facts), std::move(c)));
}

Status check_class(const ModelFacts& facts, const JsonConfig& config, const char* known) {
  if (facts.architecture == known) return {};
  return unsupported(message({"[architectures] of ", config.where(), " names '", facts.architecture,
                              "'; of this family ", known, " is supported."}));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_parakeet_encoder(const ModelFiles& files) {
  ModelFacts facts{.family = "parakeet_encoder"};
  VKF_ASSIGN(facts.architecture, get_architecture(files.config, "ParakeetEncoder"));
  VKF_CHECK(check_class(facts, files.config, "ParakeetEncoder"));
  ParakeetConfig c;
  VKF_CHECK(read_parakeet_encoder(files.config, c));
  return make_parakeet(std::move(facts), std::move(c));
}

Result<std::unique_ptr<ModelFamily>> load_parakeet_ctc(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "parakeet_ctc", .head = HeadKind::kCtc};
  VKF_ASSIGN(facts.architecture, get_architecture(config, "ParakeetForCTC"));
  VKF_CHECK(check_class(facts, config, "ParakeetForCTC"));
  const JsonConfig encoder = config.object("encoder_config");
  VKF_CHECK(encoder.status());
  ParakeetConfig c;
  VKF_CHECK(read_parakeet_encoder(encoder, c));
  VKF_ASSIGN(c.classes, get_size_or(config, "vocab_size", 1025, kMostVocabulary));
  VKF_ASSIGN(c.blank, config.get_int_or("pad_token_id", 1024));
  if (c.blank < 0 || c.blank >= c.classes) {
    return invalid_file(message({"[pad_token_id] in ", config.where(), " is ", c.blank,
                                 ", but must be a class below vocab_size, ", c.classes, "."}));
  }
  facts.target_vocab = c.classes;
  return make_parakeet(std::move(facts), std::move(c));
}

}  // namespace vkformer
