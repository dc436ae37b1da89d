// wav2vec 2.0 with Conformer layers (Baevski et al., 2020, "wav2vec 2.0"; Gulati et al., 2020,
// "Conformer"): frames of audio by convolutions, then layers of attention and convolution. A CTC
// head, where it has one, gives a character for each frame (Graves et al., 2006).
#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/distance_bias.h"
#include "model/blocks/gated_distance_bias.h"
#include "model/blocks/picture_layers.h"
#include "model/blocks/relative_attention.h"
#include "model/family_list.h"
#include "model/wav2vec2_conformer_config.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/conv.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;
using Positions = ConformerConfig::Positions;

constexpr float kConformerEpsilon = 1e-5f;  // of the norms that layer_norm_eps does not set

class Wav2Vec2Conformer : public ModelFamily {
 public:
  // `inner`: what a model with a head calls the bare one in its files.
  Wav2Vec2Conformer(ModelFacts facts, ConformerConfig config, std::string inner)
      : facts_(std::move(facts)),
        c_(std::move(config)),
        input_{.convs = c_.stem.convs},
        inner_(std::move(inner)) {
    facts_.wave = input_.facts();
    generation_.pad = c_.blank;
  }

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override {
    return input_.read(inputs, result);
  }
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  struct Pass {
    ModelBuilder& b;
    int64_t batch, frames;
    TensorId mask;  // key mask (words), where any frame is masked
    ForwardTaps taps;
  };

  Status add_layer_rows(const Checkpoint& checkpoint, int64_t layer, WeightTable& table) const;
  Result<TensorId> norm(const Pass& pass, const std::string& name, TensorId x,
                        float epsilon = kConformerEpsilon) const;
  Result<TensorId> half_step(const Pass& pass, const std::string& rows, TensorId x) const;
  Result<TensorId> attend(const Pass& pass, int64_t layer, TensorId h) const;
  Result<TensorId> project_turned(const Pass& pass, const std::string& rows, TensorId h) const;
  Result<TensorId> convolve(const Pass& pass, const std::string& rows, TensorId x) const;
  Result<TensorId> add_layer(const Pass& pass, int64_t layer, TensorId x) const;
  Result<TensorId> add_conformer_layers(const Pass& pass, TensorId x) const;
  StackConfig plain_stack() const;
  Result<TensorId> add_plain_layers(const Pass& pass, TensorId x) const;
  Status add_plain_layer_rows(const Checkpoint& checkpoint, int64_t layer,
                              WeightTable& table) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  ConformerConfig c_;
  WaveformInput input_;
  std::string inner_;
  std::string prefix_;     // of this file
  DistanceBias distance_;  // that layers gate; reach 0: none
};

std::string rows_of(int64_t layer) {
  return "layers." + std::to_string(layer);
}

// --- Weights
// --------------------------------------------------------------------------------------

Status Wav2Vec2Conformer::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, inner_ + ".", "encoder.layer_norm.weight");
  if (c_.gated.buckets > 0) {
    StackConfig stack = plain_stack();
    VKF_CHECK(read_distance_bias(
        checkpoint,
        {.tensor = prefix_ + "encoder.layers.0.attention.rel_attn_embed.weight", .t5 = c_.gated},
        stack));
    distance_ = std::move(stack.distance);
  }
  if (c_.positions != Positions::kByFile) return {};
  // A configuration without the key, or with null: positions are relative where there are weights
  // for them.
  const std::string known = prefix_ + "encoder.layers.0.self_attn.linear_pos.weight";
  c_.positions = checkpoint.find(known) == nullptr ? Positions::kNone : Positions::kRelative;
  return {};
}

// The table of the depthwise convolution with its batch norm.
Result<WeightRow> depthwise_row(const Checkpoint& checkpoint, std::string to,
                                const std::string& from, int64_t d, int64_t kernel) {
  const std::string norm = from + "batch_norm.";
  VKF_ASSIGN(const std::vector<float> weight,
             read_floats(checkpoint, from + "depthwise_conv.weight", {d, 1, kernel}));
  VKF_ASSIGN(const std::vector<float> gain, read_floats(checkpoint, norm + "weight", {d}));
  VKF_ASSIGN(const std::vector<float> shift, read_floats(checkpoint, norm + "bias", {d}));
  VKF_ASSIGN(const std::vector<float> mean, read_floats(checkpoint, norm + "running_mean", {d}));
  VKF_ASSIGN(const std::vector<float> variance, read_floats(checkpoint, norm + "running_var", {d}));
  VKF_ASSIGN(std::vector<float> table,
             fold_batch_norm({.name = from, .out = d, .weight = weight},
                             {.gain = gain, .shift = shift, .mean = mean, .variance = variance}));
  return computed_row(std::move(to), std::move(table), d, kernel + 1);
}

Status Wav2Vec2Conformer::add_layer_rows(const Checkpoint& checkpoint, int64_t layer,
                                         WeightTable& table) const {
  const int64_t d = c_.width;
  const std::string to = rows_of(layer);
  const std::string from = prefix_ + "encoder.layers." + std::to_string(layer) + ".";
  const std::string attn = from + "self_attn.";
  const std::string conv = from + "conv_module.";
  for (const char* part : {"ffn1", "ffn2"}) {
    const std::string f = std::string(".") + part;
    table.rows.push_back(norm_row(to + f + ".norm", from + part + "_layer_norm", d));
    table.rows.push_back(
        linear_row(to + f + ".up", {from + part + ".intermediate_dense"}, c_.ffn, d));
    table.rows.push_back(linear_row(to + f + ".down", {from + part + ".output_dense"}, d, c_.ffn));
  }
  table.rows.push_back(norm_row(to + ".self.norm", from + "self_attn_layer_norm", d));
  if (c_.positions == Positions::kRotary) {
    table.rows.push_back(
        linear_row(to + ".self.qk", {attn + "linear_q", attn + "linear_k"}, 2 * d, d));
    table.rows.push_back(linear_row(to + ".self.v", {attn + "linear_v"}, d, d));
  } else {
    table.rows.push_back(linear_row(
        to + ".self.qkv", {attn + "linear_q", attn + "linear_k", attn + "linear_v"}, 3 * d, d));
  }
  if (c_.positions == Positions::kRelative) {
    const int64_t e = d / c_.heads;
    table.rows.push_back(table_row(to + ".self.u", {attn + "pos_bias_u"}, {c_.heads}, e));
    table.rows.push_back(table_row(to + ".self.v", {attn + "pos_bias_v"}, {c_.heads}, e));
    table.rows.push_back(table_row(to + ".self.positions", {attn + "linear_pos.weight"}, {d}, d));
  }
  table.rows.push_back(linear_row(to + ".self.out", {attn + "linear_out"}, d, d));
  table.rows.push_back(norm_row(to + ".conv.norm", conv + "layer_norm", d));
  // Pairs of a gate and its value; the file has the values first.
  WeightRow gate = plain_linear_row(to + ".conv.gate", {conv + "pointwise_conv1"}, 2 * d, d);
  for (int64_t i = 0; i < d; ++i) {
    gate.row_order.push_back(u32(d + i));
    gate.row_order.push_back(u32(i));
  }
  table.rows.push_back(std::move(gate));
  VKF_ASSIGN(WeightRow depthwise,
             depthwise_row(checkpoint, to + ".conv.table", conv, d, c_.kernel));
  table.rows.push_back(std::move(depthwise));
  table.rows.push_back(plain_linear_row(to + ".conv.out", {conv + "pointwise_conv2"}, d, d));
  table.rows.push_back(norm_row(to + ".norm", from + "final_layer_norm", d));
  return {};
}

Status Wav2Vec2Conformer::add_plain_layer_rows(const Checkpoint& checkpoint, int64_t layer,
                                               WeightTable& table) const {
  const int64_t d = c_.width;
  const std::string to = rows_of(layer);
  const std::string from = prefix_ + "encoder.layers." + std::to_string(layer) + ".";
  const std::string attn = from + "attention.";
  const std::string feed = from + "feed_forward.";
  table.rows.push_back(norm_row(to + ".self.norm", from + "layer_norm", d));
  table.rows.push_back(
      linear_row(to + ".self.qkv", {attn + "q_proj", attn + "k_proj", attn + "v_proj"}, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {attn + "out_proj"}, d, d));
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "final_layer_norm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {feed + "intermediate_dense"}, c_.ffn, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {feed + "output_dense"}, d, c_.ffn));
  if (c_.gated.buckets == 0) return {};
  return add_gate_rows(checkpoint, to + ".self", attn, plain_stack(), table);
}

Result<WeightTable> Wav2Vec2Conformer::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const int64_t last = c_.stem.convs.back().out;
  add_stem_rows(c_.stem, prefix_ + "feature_extractor.conv_layers.", table);
  const std::string project = prefix_ + "feature_projection.";
  if (c_.feature_norm == ConformerConfig::FeatureNorm::kYes) {
    table.rows.push_back(norm_row("features.norm", project + "layer_norm", last));
  }
  table.rows.push_back(linear_row("features.projection", {project + "projection"}, c_.width, last));
  const bool plain = c_.kind != ConformerConfig::Layers::kConformer;
  if (plain) {
    VKF_ASSIGN(
        WeightRow positions,
        position_conv_row(checkpoint, prefix_ + "encoder.pos_conv_embed.conv.", c_.position));
    table.rows.push_back(std::move(positions));
    for (int64_t i = 0; i < c_.layers; ++i) VKF_CHECK(add_plain_layer_rows(checkpoint, i, table));
  } else {
    for (int64_t i = 0; i < c_.layers; ++i) VKF_CHECK(add_layer_rows(checkpoint, i, table));
  }
  table.rows.push_back(
      norm_row(plain ? "layers.norm" : "norm", prefix_ + "encoder.layer_norm", c_.width));
  if (c_.classes > 0) table.rows.push_back(linear_row("head", {c_.head}, c_.classes, c_.width));
  // Read by depthwise_row and the like, or used in training only.
  table.ignored = {"*masked_spec_embed",     "*pos_conv_embed.*",    "*conv_module.batch_norm.*",
                   "*depthwise_conv.weight", "*embed_positions.*",   "*.rel_attn_embed.weight",
                   "*.gru_rel_pos_*",        "quantizer.*",          "project_q.*",
                   "project_hid.*",          "*.num_batches_tracked"};
  return table;
}

// --- Graph
// ----------------------------------------------------------------------------------------

Result<TensorId> Wav2Vec2Conformer::norm(const Pass& pass, const std::string& name, TensorId x,
                                         float epsilon) const {
  return add_named_norm(pass.b, StackConfig{.epsilon = epsilon}, name, x);
}

// x + ffn(norm x) / 2.
Result<TensorId> Wav2Vec2Conformer::half_step(const Pass& pass, const std::string& rows,
                                              TensorId x) const {
  VKF_ASSIGN(TensorId h, norm(pass, rows + ".norm", x));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".up", h, {.activation = c_.activation}));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".down", h));
  return add_combine(pass.b.graph(), h, x, {.alpha = 0.5f});
}

// [q | k | v] where q and k are made of h turned, head by head, and v of h itself.
Result<TensorId> Wav2Vec2Conformer::project_turned(const Pass& pass, const std::string& rows,
                                                   TensorId h) const {
  ModelBuilder& b = pass.b;
  const int64_t e = c_.width / c_.heads;
  RotaryScaling scaling;
  scaling.theta = c_.base;
  TensorId table = b.graph().find_external("rotary");
  if (table == kNoTensor) {
    VKF_ASSIGN(const std::vector<float> values,
               rotary_table(scaling, {.positions = pass.frames, .rotary_width = e}));
    table = b.host_floats("rotary", {pass.frames, e}, values);
  }
  b.graph().set_scope(rows);
  VKF_ASSIGN(
      const TensorId turned,
      add_rotary(b.graph(), {.x = h, .table = table},
                 {.heads = u32(c_.heads), .head_width = u32(e), .tokens = u32(pass.frames)}));
  VKF_ASSIGN(const TensorId qk, add_named_linear(b, rows + ".qk", turned));
  VKF_ASSIGN(const TensorId v, add_named_linear(b, rows + ".v", h));
  return add_concat_columns(b.graph(), qk, v);
}

// h (B, T, D) -> (B, T, D), before the output projection.
Result<TensorId> Wav2Vec2Conformer::attend(const Pass& pass, int64_t layer, TensorId h) const {
  const std::string rows = rows_of(layer) + ".self";
  const int64_t d = c_.width;
  TensorId qkv = kNoTensor;
  if (c_.positions == Positions::kRotary) {
    VKF_ASSIGN(qkv, project_turned(pass, rows, h));
  } else {
    VKF_ASSIGN(qkv, add_named_linear(pass.b, rows + ".qkv", h));
  }
  AttentionAttrs a;
  a.batch = u32(pass.batch);
  a.heads = a.kv_heads = u32(c_.heads);
  a.queries = a.keys = u32(pass.frames);
  a.head_width = a.value_width = u32(d / c_.heads);
  a.q = merged_rows(a.queries, u32(3 * d), 0, a.head_width);
  a.k = merged_rows(a.keys, u32(3 * d), u32(d), a.head_width);
  a.v = merged_rows(a.keys, u32(3 * d), u32(2 * d), a.head_width);
  if (pass.mask != kNoTensor) a.terms.key_mask_offset = 0;
  if (c_.positions == Positions::kRelative) {
    const RelativeAttention relative{
        .width = d,
        .tokens = pass.frames,
        .u = rows + ".u",
        .v = rows + ".v",
        .positions = rows + ".positions",
    };
    VKF_ASSIGN(qkv, append_relative_positions(pass.b, relative, qkv, a));
  }
  return add_seen_attention(pass.b, {.q = qkv, .kv = qkv, .terms = pass.mask}, a, pass.taps, layer);
}

// x + the convolution module of x.
Result<TensorId> Wav2Vec2Conformer::convolve(const Pass& pass, const std::string& rows,
                                             TensorId x) const {
  VKF_ASSIGN(TensorId h, norm(pass, rows + ".norm", x));
  VKF_ASSIGN(h,
             add_named_linear(pass.b, rows + ".gate", h,
                              {.activation = ActivationKind::kSigmoid, .gate = GatePairs::kPairs}));
  VKF_ASSIGN(const TensorId table, pass.b.table(rows + ".table"));
  ConvAttrs conv{.groups = u32(c_.width)};
  conv.window.kernel_width = u32(c_.kernel);
  conv.window.pad_left = u32((c_.kernel - 1) / 2);
  VKF_ASSIGN(h, add_conv(pass.b.graph(), h, table, conv));
  VKF_ASSIGN(h, add_activation(pass.b.graph(), h, {c_.activation}));
  return add_named_linear(pass.b, rows + ".out", h, {.residual = x});
}

Result<TensorId> Wav2Vec2Conformer::add_layer(const Pass& pass, int64_t layer, TensorId x) const {
  const std::string rows = rows_of(layer);
  VKF_ASSIGN(x, half_step(pass, rows + ".ffn1", x));
  VKF_ASSIGN(const TensorId h, norm(pass, rows + ".self.norm", x));
  VKF_ASSIGN(const TensorId y, attend(pass, layer, h));
  VKF_ASSIGN(x, add_named_linear(pass.b, rows + ".self.out", y, {.residual = x}));
  VKF_ASSIGN(x, convolve(pass, rows + ".conv", x));
  VKF_ASSIGN(x, half_step(pass, rows + ".ffn2", x));
  return norm(pass, rows + ".norm", x);
}

Result<TensorId> Wav2Vec2Conformer::add_conformer_layers(const Pass& pass, TensorId x) const {
  for (int64_t i = 0; i < c_.layers; ++i) {
    if (pass.taps.hidden_states == Tap::kOn) {
      pass.b.mark_output(x, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_layer(pass, i, x));
  }
  return norm(pass, "norm", x, c_.epsilon);
}

StackConfig Wav2Vec2Conformer::plain_stack() const {
  StackConfig stack{.rows = "layers", .layers = c_.layers, .width = c_.width, .heads = c_.heads};
  stack.ffn = c_.ffn;
  stack.epsilon = c_.epsilon;
  stack.activation = c_.activation;
  if (c_.kind == ConformerConfig::Layers::kPre) {
    stack.order = StackConfig::Order::kPre;
    stack.final_norm = StackConfig::FinalNorm::kYes;
  }
  return stack;
}

// x plus what the frames around each one say of its position, then the layers.
Result<TensorId> Wav2Vec2Conformer::add_plain_layers(const Pass& pass, TensorId x) const {
  Graph& g = pass.b.graph();
  const StackConfig stack = plain_stack();
  VKF_ASSIGN(const TensorId h, add_position_conv(pass.b, c_.position, x));
  if (c_.kind == ConformerConfig::Layers::kPost) {
    VKF_ASSIGN(x, add_named_norm(pass.b, stack, "layers.norm", h, x));
  } else {
    VKF_ASSIGN(x, add_combine(g, h, x, {}));
  }
  StackRun run{.batch = pass.batch, .tokens = pass.frames};
  run.taps = pass.taps;
  if (pass.mask != kNoTensor) {
    run.terms.words = pass.mask;
    run.terms.params.key_mask_offset = 0;
  }
  if (distance_.reach > 0) {
    VKF_ASSIGN(run.attend, gated_distance_attention(pass.b, stack, distance_, pass.frames));
  }
  return add_stack(pass.b, stack, run, x);
}

Status Wav2Vec2Conformer::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                        const ForwardTaps& taps) const {
  VKF_ASSIGN(const WaveformSource source, add_waveform_source(b, input_, shape));
  const Pass pass{b, shape.batch, shape.source, source.mask, taps};
  VKF_ASSIGN(TensorId x, add_stem(b, c_.stem, source.samples));
  if (c_.feature_norm == ConformerConfig::FeatureNorm::kYes) {
    VKF_ASSIGN(x, norm(pass, "features.norm", x, c_.epsilon));
  }
  if (c_.feature_tap == ConformerConfig::FeatureTap::kYes) b.mark_output(x, "extract_features");
  VKF_ASSIGN(x, add_named_linear(b, "features.projection", x));
  VKF_ASSIGN(x, add_kept_frames(b, source, x));
  VKF_ASSIGN(x, c_.kind == ConformerConfig::Layers::kConformer ? add_conformer_layers(pass, x)
                                                               : add_plain_layers(pass, x));
  b.mark_output(x, "last_hidden_state");
  if (c_.classes == 0) return {};
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "head", x));
  b.mark_output(logits, "logits");
  return {};
}

// A model of the family facts.family, whose class names begin with `classes`.
Result<std::unique_ptr<ModelFamily>> load_frames(const ModelFiles& files, ModelFacts facts,
                                                 const std::string& classes,
                                                 const std::string& inner, ConformerConfig c) {
  facts.kind = ModelKind::kEncoder;
  facts.source = SourceKind::kWaveform;
  VKF_CHECK(read_conformer(files.config, classes, facts, c));
  facts.width = c.width;
  facts.encoder_layers = c.layers;
  facts.encoder_heads = c.heads;
  return std::unique_ptr<ModelFamily>(new Wav2Vec2Conformer(std::move(facts), std::move(c), inner));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_wavlm(const ModelFiles& files) {
  ConformerConfig c;
  c.kind = ConformerConfig::Layers::kPost;
  c.gated = {.buckets = 320, .max_distance = 800};
  return load_frames(files, {.family = "wavlm"}, "WavLM", "wavlm", std::move(c));
}

Result<std::unique_ptr<ModelFamily>> load_wav2vec2_conformer(const ModelFiles& files) {
  return load_frames(files, {.family = "wav2vec2-conformer"}, "Wav2Vec2Conformer",
                     "wav2vec2_conformer", {});
}

Result<std::unique_ptr<ModelFamily>> load_wav2vec2(const ModelFiles& files) {
  ConformerConfig c;
  c.kind = ConformerConfig::Layers::kPost;
  return load_frames(files, {.family = "wav2vec2"}, "Wav2Vec2", "wav2vec2", std::move(c));
}

Result<std::unique_ptr<ModelFamily>> load_hubert(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const bool batch_norm, config.get_bool_or("conv_pos_batch_norm", false));
  if (batch_norm) {
    return unsupported(message({"[conv_pos_batch_norm] is true in ", config.where(),
                                "; a batch norm before the convolution for positions is not "
                                "implemented."}));
  }
  ConformerConfig c;
  c.kind = ConformerConfig::Layers::kPost;
  c.feature_tap = ConformerConfig::FeatureTap::kNo;
  VKF_ASSIGN(const bool norm, config.get_bool_or("feat_proj_layer_norm", true));
  if (!norm) c.feature_norm = ConformerConfig::FeatureNorm::kNo;
  return load_frames(files, {.family = "hubert"}, "Hubert", "hubert", std::move(c));
}

}  // namespace vkformer
