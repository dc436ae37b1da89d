// wav2vec 2.0 with Conformer layers (Baevski et al., 2020, "wav2vec 2.0"; Gulati et al., 2020,
// "Conformer"). It makes frames of audio by convolutions, then layers of attention and convolution.
// A CTC head, where it has one, gives a character for each frame (Graves et al., 2006).
#include "base/message.h"
#include "model/blocks/conformer_layer.h"
#include "model/blocks/distance_bias.h"
#include "model/blocks/gated_distance_bias.h"
#include "model/family_list.h"
#include "model/wav2vec2_conformer_config.h"
#include "model/weight_rows.h"
#include "ops/combine.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;
using Positions = ConformerConfig::Positions;

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
  using Pass = ConformerPass;

  ConformerLayer conformer() const;
  Result<TensorId> norm(const Pass& pass, const std::string& name, TensorId x, float epsilon) const;
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

// Names of a layer of a Conformer in the family's files.
ConformerNames wav2vec2_names() {
  ConformerNames names;
  for (size_t i = 0; i < 2; ++i) {
    const std::string ffn = "ffn" + std::to_string(i + 1);
    names.ffn_norm[i] = ffn + "_layer_norm";
    names.ffn_up[i] = ffn + ".intermediate_dense";
    names.ffn_down[i] = ffn + ".output_dense";
  }
  names.attention_norm = "self_attn_layer_norm";
  names.q = "self_attn.linear_q";
  names.k = "self_attn.linear_k";
  names.v = "self_attn.linear_v";
  names.out = "self_attn.linear_out";
  names.u = "self_attn.pos_bias_u";
  names.v_bias = "self_attn.pos_bias_v";
  names.positions = "self_attn.linear_pos";
  names.conv_norm = "conv_module.layer_norm";
  names.gate = "conv_module.pointwise_conv1";
  names.depthwise = "conv_module.depthwise_conv";
  names.batch_norm = "conv_module.batch_norm";
  names.conv_out = "conv_module.pointwise_conv2";
  names.norm = "final_layer_norm";
  return names;
}

ConformerLayer Wav2Vec2Conformer::conformer() const {
  ConformerLayer layer{.width = c_.width,
                       .heads = c_.heads,
                       .ffn = c_.ffn,
                       .kernel = c_.kernel,
                       .activation = c_.activation,
                       .positions = ConformerLayer::Positions::kNone,
                       .base = c_.base,
                       .names = wav2vec2_names()};
  if (c_.positions == Positions::kRelative) layer.positions = ConformerLayer::Positions::kRelative;
  if (c_.positions == Positions::kRotary) layer.positions = ConformerLayer::Positions::kRotary;
  return layer;
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
    const ConformerLayer layer = conformer();
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string from = prefix_ + "encoder.layers." + std::to_string(i) + ".";
      VKF_CHECK(add_conformer_rows(checkpoint, layer, i, from, table));
    }
  }
  table.rows.push_back(
      norm_row(plain ? "layers.norm" : "norm", prefix_ + "encoder.layer_norm", c_.width));
  if (c_.classes > 0) table.rows.push_back(linear_row("head", {c_.head}, c_.classes, c_.width));
  // Read by add_conformer_rows and the like, or used in training only.
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

Result<TensorId> Wav2Vec2Conformer::add_conformer_layers(const Pass& pass, TensorId x) const {
  const ConformerLayer layer = conformer();
  for (int64_t i = 0; i < c_.layers; ++i) {
    if (pass.taps.hidden_states == Tap::kOn) {
      pass.b.mark_output(x, "hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_conformer_layer(pass, layer, i, x));
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
