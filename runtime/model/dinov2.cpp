// DINOv2 (Oquab et al., 2023) and its form with registers (Darcet et al., 2023). It is a ViT whose
// branches have a separate scale for each column, for pictures of any size.
#include "model/dinov2.h"

#include "base/check.h"
#include "base/message.h"
#include "model/blocks/heads.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/mean_pool.h"

namespace vkformer {
namespace {

constexpr int64_t kMostRegisters = 1024;

void add_dinov2_layer(const Dinov2Encoder& encoder, int64_t i, const std::string& from,
                      WeightTable& table) {
  const StackConfig& s = encoder.stack;
  const int64_t d = s.width;
  const std::string to = s.layer_rows(i);
  const std::string attn = from + "attention.attention.";
  const auto linear = encoder.bias == ProjectionBias::kYes ? linear_row : plain_linear_row;
  table.rows.push_back(norm_row(to + ".self.norm", from + "norm1", d));
  table.rows.push_back(
      linear(to + ".self.qkv", {attn + "query", attn + "key", attn + "value"}, 3 * d, d));
  table.rows.push_back(linear_row(to + ".self.out", {from + "attention.output.dense"}, d, d));
  table.rows.back().row_scale = from + "layer_scale1.lambda1";
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "norm2", d));
  if (s.gate == StackConfig::Gate::kYes) {
    table.rows.push_back(
        in_gate_pairs(linear_row(to + ".ffn.up", {from + "mlp.weights_in"}, 2 * s.ffn, d)));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.weights_out"}, d, s.ffn));
  } else {
    table.rows.push_back(linear_row(to + ".ffn.up", {from + "mlp.fc1"}, s.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {from + "mlp.fc2"}, d, s.ffn));
  }
  table.rows.back().row_scale = from + "layer_scale2.lambda1";
}

class Dinov2 : public ModelFamily {
 public:
  Dinov2(ModelFacts facts, Dinov2Encoder config)
      : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  Status classify(ModelBuilder& b, const GridSize& grid, TensorId states) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  Dinov2Encoder c_;
  std::string prefix_;
};

Status Dinov2::prepare(const Checkpoint& checkpoint) {
  prefix_ = name_prefix(checkpoint, facts_.family + ".", "embeddings.cls_token");
  return c_.prepare(checkpoint, prefix_);
}

Result<WeightTable> Dinov2::weight_table(const Checkpoint&) const {
  WeightTable table;
  c_.add_rows(prefix_, table);
  if (facts_.head == HeadKind::kSequence) {
    table.rows.push_back(linear_row("classifier", {"classifier"},
                                    static_cast<int64_t>(facts_.labels.size()),
                                    2 * c_.stack.width));
  }
  table.ignored.push_back("classifier.*");
  return table;
}

// [class | mean of the patches] -> logits.
Status Dinov2::classify(ModelBuilder& b, const GridSize& grid, TensorId states) const {
  const Shape shape = b.graph().tensor(states).shape;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t t = c_.embedding.class_tokens; t < shape[1]; ++t) {
      rows.push_back(static_cast<uint32_t>(i * shape[1] + t));
    }
  }
  const TensorId indices =
      b.host_tensor("patches.tokens", DType::kU32, {shape[0], grid.count()}, std::move(rows));
  b.graph().set_scope("logits");
  VKF_ASSIGN(const TensorId first, add_token_states(b, states, 0));
  VKF_ASSIGN(const TensorId patches, add_gather_rows(b.graph(), {.x = states, .indices = indices}));
  VKF_ASSIGN(const TensorId mean, add_mean_pool(b.graph(), patches, kNoTensor, {}));
  VKF_ASSIGN(const TensorId both, add_concat_columns(b.graph(), first, mean));
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, "classifier", both));
  b.mark_output(logits, "logits");
  return {};
}

Status Dinov2::build_forward(ModelBuilder& b, const ForwardShape& shape,
                             const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.embedding;
  VKF_ASSIGN(const GridSize grid, grid_of(e, shape));
  const int64_t tokens = e.class_tokens + grid.count();
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  VKF_ASSIGN(const TensorId x, add_picture_tokens(b, e, c_.tokens, grid, pixels));
  const StackRun run{.batch = shape.batch, .tokens = tokens, .taps = taps};
  VKF_ASSIGN(const TensorId states, add_stack(b, c_.stack, run, x));
  b.mark_output(states, "last_hidden_state");
  if (facts_.head == HeadKind::kSequence) return classify(b, grid, states);
  const HeadConfig pooled{.input = HeadConfig::Input::kToken, .name = "pooler_output"};
  return add_heads(b, c_.stack, {pooled}, {.states = states});
}

Status read_dinov2_stack(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "encoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-6));
  VKF_ASSIGN(const double ratio, config.get_double_or("mlp_ratio", 4.0));
  const double ffn = static_cast<double>(stack.width) * ratio;
  if (!(ffn >= 1 && ffn <= static_cast<double>(kMostWidth))) {
    return invalid_file(message({"[mlp_ratio] in ", config.where(), " is ", ratio,
                                 ", which gives a feed-forward width of ", ffn,
                                 ", but it must be 1 to ", kMostWidth}));
  }
  stack.ffn = static_cast<int64_t>(ffn);
  VKF_ASSIGN(const bool gated, config.get_bool_or("use_swiglu_ffn", false));
  if (gated) {
    // Two thirds of it, rounded up to a multiple of 8; the activation is fixed.
    stack.gate = StackConfig::Gate::kYes;
    stack.activation = ActivationKind::kSilu;
    stack.ffn = (2 * stack.ffn / 3 + 7) / 8 * 8;
    return {};
  }
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  return {};
}

Result<std::unique_ptr<ModelFamily>> make_dinov2(const JsonConfig& config,
                                                 const std::string& bare_class, ModelFacts facts,
                                                 Dinov2Encoder c) {
  facts.kind = ModelKind::kEncoder;
  facts.source = SourceKind::kPictures;
  VKF_CHECK(read_picture_head(config, bare_class, facts));
  facts.width = c.stack.width;
  facts.encoder_layers = c.stack.layers;
  facts.encoder_heads = c.stack.heads;
  facts.grid.channels = c.embedding.picture.channels;
  return std::unique_ptr<ModelFamily>(new Dinov2(std::move(facts), std::move(c)));
}

}  // namespace

Status Dinov2Encoder::prepare(const Checkpoint& checkpoint, const std::string& prefix) {
  const std::string from = prefix + "embeddings.";
  VKF_ASSIGN(tokens, read_picture_tokens(
                         checkpoint, embedding, stack.width,
                         {.first = {{from + "cls_token"}, {from + "register_tokens", registers()}},
                          .positions = from + "position_embeddings"}));
  tokens.filter = filter;
  return {};
}

void Dinov2Encoder::add_rows(const std::string& prefix, WeightTable& table) const {
  const std::string from = prefix + "embeddings.";
  table.rows.push_back(linear_row(embedding.patches, {from + "patch_embeddings.projection"},
                                  stack.width,
                                  embedding.picture.channels * embedding.patch.count()));
  for (int64_t i = 0; i < stack.layers; ++i) {
    add_dinov2_layer(*this, i, prefix + "encoder.layer." + std::to_string(i) + ".", table);
  }
  table.rows.push_back(norm_row(stack.rows + ".norm", prefix + "layernorm", stack.width));
  // Positions and tokens are read on the host.
  table.ignored.insert(table.ignored.end(),
                       {from + "cls_token", from + "mask_token", from + "register_tokens",
                        from + "position_embeddings"});
}

Result<Dinov2Encoder> read_dinov2_encoder(const JsonConfig& config, int64_t patch,
                                          int64_t registers) {
  Dinov2Encoder c;
  VKF_ASSIGN(c.embedding,
             read_picture_embedding(config, {.patch = patch, .class_tokens = 1 + registers}));
  c.embedding.patches = "patches";
  c.embedding.positions = "positions";
  VKF_CHECK(read_dinov2_stack(config, c.stack));
  VKF_ASSIGN(const bool bias, config.get_bool_or("qkv_bias", true));
  c.bias = bias ? ProjectionBias::kYes : ProjectionBias::kNo;
  return c;
}

Result<std::unique_ptr<ModelFamily>> load_dinov2(const ModelFiles& files) {
  VKF_ASSIGN(Dinov2Encoder encoder, read_dinov2_encoder(files.config, 14, 0));
  return make_dinov2(files.config, "Dinov2Model", {.family = "dinov2"}, std::move(encoder));
}

Result<std::unique_ptr<ModelFamily>> load_dinov2_with_registers(const ModelFiles& files) {
  VKF_ASSIGN(const int64_t registers, files.config.get_int_or("num_register_tokens", 4));
  if (registers < 0 || registers > kMostRegisters) {
    return invalid_file(message({"[num_register_tokens] in ", files.config.where(), " is ",
                                 registers, ", but must be 0 to ", kMostRegisters}));
  }
  VKF_ASSIGN(Dinov2Encoder encoder, read_dinov2_encoder(files.config, 16, registers));
  encoder.filter = PositionFilter::kBicubicAntialias;
  return make_dinov2(files.config, "Dinov2WithRegistersModel", {.family = "dinov2_with_registers"},
                     std::move(encoder));
}

}  // namespace vkformer
