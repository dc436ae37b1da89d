// DINOv3's ViT (Siméoni et al., 2025): a ViT with registers and a scale for each column of its
// branches. It has no learned positions. Queries and keys of patches are rotated by their row and
// column, so that pictures may have any size.
#include <cmath>
#include <numbers>

#include "base/message.h"
#include "model/blocks/heads.h"
#include "model/blocks/picture_layers.h"
#include "model/blocks/picture_tokens.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

constexpr int64_t kMostDinov3Registers = 1024;
// A head's angles: a quarter of its columns by the row, a quarter by the column, and both again.
constexpr int64_t kAngleParts = 4;

struct Dinov3Config {
  PictureEmbedding embedding;  // class_tokens: the class and the registers
  StackConfig stack;
  double theta = 100.0;
  // Which layers have biases.
  bool query_bias = true;
  bool key_bias = false;
  bool value_bias = true;
  bool out_bias = true;
  bool ffn_bias = true;
};

class Dinov3 : public ModelFamily {
 public:
  Dinov3(ModelFacts facts, Dinov3Config config) : facts_(std::move(facts)), c_(std::move(config)) {}

  const ModelFacts& facts() const override { return facts_; }
  const GenerationFacts& generation() const override { return generation_; }
  Status prepare(const Checkpoint& checkpoint) override;
  Result<WeightTable> weight_table(const Checkpoint& checkpoint) const override;
  Status build_forward(ModelBuilder& builder, const ForwardShape& shape,
                       const ForwardTaps& taps) const override;

 private:
  void add_layer(int64_t i, const std::string& from, WeightTable& table) const;
  std::vector<float> turning_of(const GridSize& grid) const;

  ModelFacts facts_;
  GenerationFacts generation_;
  Dinov3Config c_;
  PictureTokens tokens_;
};

Status Dinov3::prepare(const Checkpoint& checkpoint) {
  const int64_t registers = c_.embedding.class_tokens - 1;
  VKF_ASSIGN(tokens_, read_picture_tokens(checkpoint, c_.embedding, c_.stack.width,
                                          {.first = {{"embeddings.cls_token"},
                                                     {"embeddings.register_tokens", registers}}}));
  return {};
}

void Dinov3::add_layer(int64_t i, const std::string& from, WeightTable& table) const {
  const StackConfig& s = c_.stack;
  const int64_t d = s.width;
  const std::string to = s.layer_rows(i);
  const std::string attention = from + "attention.";
  const std::string mlp = from + "mlp.";
  WeightRow qkv =
      linear_row(to + ".self.qkv",
                 {attention + "q_proj", attention + "k_proj", attention + "v_proj"}, 3 * d, d);
  if (!c_.query_bias) qkv.biases[0].clear();
  if (!c_.key_bias) qkv.biases[1].clear();
  if (!c_.value_bias) qkv.biases[2].clear();
  if (!c_.query_bias && !c_.key_bias && !c_.value_bias) qkv.biases.clear();
  const auto out = c_.out_bias ? linear_row : plain_linear_row;
  const auto ffn = c_.ffn_bias ? linear_row : plain_linear_row;
  table.rows.push_back(norm_row(to + ".self.norm", from + "norm1", d));
  table.rows.push_back(std::move(qkv));
  table.rows.push_back(out(to + ".self.out", {attention + "o_proj"}, d, d));
  table.rows.back().row_scale = from + "layer_scale1.lambda1";
  table.rows.push_back(norm_row(to + ".ffn.norm", from + "norm2", d));
  if (s.gate == StackConfig::Gate::kYes) {
    table.rows.push_back(
        in_gate_pairs(ffn(to + ".ffn.up", {mlp + "gate_proj", mlp + "up_proj"}, 2 * s.ffn, d)));
  } else {
    table.rows.push_back(ffn(to + ".ffn.up", {mlp + "up_proj"}, s.ffn, d));
  }
  table.rows.push_back(ffn(to + ".ffn.down", {mlp + "down_proj"}, d, s.ffn));
  table.rows.back().row_scale = from + "layer_scale2.lambda1";
}

Result<WeightTable> Dinov3::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const PictureEmbedding& e = c_.embedding;
  const StackConfig& s = c_.stack;
  table.rows.push_back(linear_row(e.patches, {"embeddings.patch_embeddings"}, s.width,
                                  e.picture.channels * e.patch.count()));
  // Version 5 of the library may write its own names.
  const std::string layers = name_prefix(checkpoint, "model.", "layer.0.norm1.weight") + "layer.";
  for (int64_t i = 0; i < s.layers; ++i) add_layer(i, layers + std::to_string(i) + ".", table);
  table.rows.push_back(norm_row(s.rows + ".norm", "norm", s.width));
  // Tokens are read on the host; rotary frequencies follow from the configuration.
  table.ignored = {"embeddings.*_token", "embeddings.register_tokens", "rope_embeddings.*"};
  return table;
}

// Cosines and sines of every token (T, E). The class and the registers have none. Those of a patch
// go by how far its center is from the picture's, in halves of the picture.
std::vector<float> Dinov3::turning_of(const GridSize& grid) const {
  const auto head = static_cast<size_t>(c_.stack.head());
  const size_t part = head / kAngleParts;
  const auto before = static_cast<size_t>(c_.embedding.class_tokens);
  const auto patches = static_cast<size_t>(grid.count());
  const auto center = [](int64_t at, int64_t count) {
    return 2.0 * (static_cast<double>(at) + 0.5) / static_cast<double>(count) - 1.0;
  };
  std::vector<float> table((before + patches) * head, 0.0f);
  for (size_t t = 0; t < before; ++t) std::fill_n(table.begin() + t * head, head / 2, 1.0f);
  for (size_t p = 0; p < patches; ++p) {
    const double places[] = {center(static_cast<int64_t>(p) / grid.width, grid.height),
                             center(static_cast<int64_t>(p) % grid.width, grid.width)};
    float* row = table.data() + (before + p) * head;
    for (size_t i = 0; i < head / 2; ++i) {
      const double power = static_cast<double>(i % part) / static_cast<double>(part);
      const double angle = 2.0 * std::numbers::pi * places[i / part] * std::pow(c_.theta, -power);
      row[i] = static_cast<float>(std::cos(angle));
      row[head / 2 + i] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

Status Dinov3::build_forward(ModelBuilder& b, const ForwardShape& shape,
                             const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.embedding;
  VKF_ASSIGN(const GridSize grid, grid_of(e, shape));
  const int64_t tokens = e.class_tokens + grid.count();
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  VKF_ASSIGN(const TensorId x, add_picture_tokens(b, e, tokens_, grid, pixels));
  StackRun run{.batch = shape.batch, .tokens = tokens, .taps = taps};
  run.turning = b.host_floats("turning", {tokens, c_.stack.head()}, turning_of(grid));
  VKF_ASSIGN(const TensorId states, add_stack(b, c_.stack, run, x));
  b.mark_output(states, "last_hidden_state");
  const HeadConfig pooled{.input = HeadConfig::Input::kToken, .name = "pooler_output"};
  return add_heads(b, c_.stack, {pooled}, {.states = states});
}

Status read_dinov3_stack(const JsonConfig& config, Dinov3Config& c) {
  StackConfig& stack = c.stack;
  stack.rows = "encoder";
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 384, kMostWidth));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 6, kMostWidth));
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 1536, kMostWidth));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(const bool gated, config.get_bool_or("use_gated_mlp", false));
  if (gated) stack.gate = StackConfig::Gate::kYes;
  if (stack.head() % kAngleParts != 0) {
    return invalid_file(message({"[num_attention_heads] in ", config.where(), " is ", stack.heads,
                                 ", which gives heads of ", stack.head(),
                                 " columns, but rotary positions need a multiple of ", kAngleParts,
                                 "; use a number of heads that gives one."}));
  }
  VKF_ASSIGN(c.theta, config.get_double_or("rope_theta", 100.0));
  if (!(c.theta > 0) || !std::isfinite(c.theta)) {
    return invalid_file(message(
        {"[rope_theta] in ", config.where(), " is ", c.theta, ", but must be a positive number."}));
  }
  stack.kinds = {{.rotary = 0}};
  stack.rotaries = {{.width = static_cast<uint32_t>(stack.head())}};
  return {};
}

Status read_dinov3_biases(const JsonConfig& config, Dinov3Config& c) {
  VKF_ASSIGN(c.query_bias, config.get_bool_or("query_bias", true));
  VKF_ASSIGN(c.key_bias, config.get_bool_or("key_bias", false));
  VKF_ASSIGN(c.value_bias, config.get_bool_or("value_bias", true));
  VKF_ASSIGN(c.out_bias, config.get_bool_or("proj_bias", true));
  VKF_ASSIGN(c.ffn_bias, config.get_bool_or("mlp_bias", true));
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_dinov3_vit(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  ModelFacts facts{
      .family = "dinov3_vit", .kind = ModelKind::kEncoder, .source = SourceKind::kPictures};
  VKF_ASSIGN(facts.architecture, get_architecture(config, "DINOv3ViTModel"));
  if (facts.architecture != "DINOv3ViTModel") {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported is the bare "
                 "DINOv3ViTModel."}));
  }
  Dinov3Config c;
  VKF_ASSIGN(const int64_t registers, config.get_int_or("num_register_tokens", 0));
  if (registers < 0 || registers > kMostDinov3Registers) {
    return invalid_file(message({"[num_register_tokens] in ", config.where(), " is ", registers,
                                 ", but must be 0 to ", kMostDinov3Registers, "."}));
  }
  VKF_ASSIGN(c.embedding, read_picture_embedding(config, {.class_tokens = 1 + registers}));
  c.embedding.patches = "patches";
  c.embedding.positions = "tokens";
  VKF_CHECK(read_dinov3_stack(config, c));
  VKF_CHECK(read_dinov3_biases(config, c));
  facts.width = c.stack.width;
  facts.encoder_layers = c.stack.layers;
  facts.encoder_heads = c.stack.heads;
  facts.grid.channels = c.embedding.picture.channels;
  return std::unique_ptr<ModelFamily>(new Dinov3(std::move(facts), std::move(c)));
}

}  // namespace vkformer
