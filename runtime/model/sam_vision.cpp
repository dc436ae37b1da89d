#include "model/sam_vision.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/picture_layers.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "ops/grid_distances.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostSamWindow = 1 << 10;
constexpr int64_t kNeckKernel = 3;

std::string vision_row(int64_t layer, const std::string& part) {
  return "vision." + std::to_string(layer) + "." + part;
}

// Attention of [q | k | v] rows, where queries and keys may be wider than values.
AttentionAttrs merged_attention(int64_t batch, int64_t tokens, int64_t heads, int64_t wide,
                                int64_t values) {
  AttentionAttrs attrs;
  attrs.batch = u32(batch);
  attrs.heads = attrs.kv_heads = u32(heads);
  attrs.queries = attrs.keys = u32(tokens);
  attrs.head_width = u32(wide);
  attrs.value_width = u32(values);
  const uint32_t row = u32(heads * (2 * wide + values));
  attrs.q = merged_rows(attrs.queries, row, 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, row, u32(heads * wide), attrs.head_width);
  attrs.v = merged_rows(attrs.keys, row, u32(2 * heads * wide), attrs.value_width);
  return attrs;
}

}  // namespace

bool SamVision::sees_all(int64_t layer) const {
  return c_.window == 0 || std::find(c_.global.begin(), c_.global.end(), layer) != c_.global.end();
}

WindowGrid SamVision::windows_of(int64_t layer) const {
  return {.tokens = c_.embedding.grid(), .window = sees_all(layer) ? 1 : c_.window};
}

Status SamVision::add_rows(const Checkpoint& checkpoint, const std::string& prefix,
                           WeightTable& table) const {
  const StackConfig& s = c_.stack;
  const PictureEmbedding& e = c_.embedding;
  const int64_t d = s.width;
  const int64_t patch = e.picture.channels * e.patch.count();
  table.rows.push_back(linear_row(e.patches, {prefix + "patch_embed.projection"}, d, patch));
  if (!e.positions.empty()) {
    const GridSize grid = e.grid();
    VKF_ASSIGN(std::vector<float> positions,
               read_floats(checkpoint, prefix + "pos_embed", {1, grid.height, grid.width, d}));
    table.rows.push_back(computed_row(e.positions, std::move(positions), grid.count(), d));
  }
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string from = prefix + "layers." + std::to_string(i) + ".";
    table.rows.push_back(norm_row(vision_row(i, "self.norm"), from + "layer_norm1", d));
    table.rows.push_back(
        biased_row(c_.bias, vision_row(i, "self.qkv"), {from + "attn.qkv"}, 3 * d, d));
    table.rows.push_back(linear_row(vision_row(i, "self.out"), {from + "attn.proj"}, d, d));
    if (c_.distances) {
      const GridSize grid = e.grid();
      const int64_t height = sees_all(i) ? grid.height : c_.window;
      const int64_t width = sees_all(i) ? grid.width : c_.window;
      table.rows.push_back(table_row(vision_row(i, "self.distances"),
                                     {from + "attn.rel_pos_h", from + "attn.rel_pos_w"},
                                     {2 * height - 1, 2 * width - 1}, s.head()));
    }
    table.rows.push_back(norm_row(vision_row(i, "ffn.norm"), from + "layer_norm2", d));
    table.rows.push_back(linear_row(vision_row(i, "ffn.up"), {from + "mlp.lin1"}, s.ffn, d));
    table.rows.push_back(linear_row(vision_row(i, "ffn.down"), {from + "mlp.lin2"}, d, s.ffn));
  }
  const int64_t c = c_.channels;
  const std::string neck = prefix + "neck.";
  table.rows.push_back(plain_linear_row("neck.1", {neck + "conv1"}, c, d));
  table.rows.push_back(norm_row("neck.1.norm", neck + "layer_norm1", c));
  table.rows.push_back(
      plain_linear_row("neck.2", {neck + "conv2"}, c, c * kNeckKernel * kNeckKernel));
  table.rows.push_back(norm_row("neck.2.norm", neck + "layer_norm2", c));
  return {};
}

// Of windows, or of the whole picture (N, T, D), before the output projection.
Result<TensorId> SamVision::attend(ModelBuilder& b, const ForwardTaps& taps, int64_t layer,
                                   TensorId h) const {
  const int64_t heads = c_.stack.heads, e = c_.stack.head();
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(e)));
  const Shape shape = b.graph().tensor(h).shape;
  VKF_ASSIGN(const TensorId qkv, add_named_linear(b, vision_row(layer, "self.qkv"), h));
  b.graph().set_scope(vision_row(layer, "self"));
  if (!c_.distances) {
    AttentionAttrs attrs = merged_attention(shape[0], shape[1], heads, e, e);
    attrs.scale = scale;
    return add_seen_attention(b, {.q = qkv, .kv = qkv}, attrs, taps, layer, "encoder_");
  }
  GridDistancesAttrs distances{.heads = u32(heads), .scale = scale};
  const GridSize grid = c_.embedding.grid();
  distances.height = u32(sees_all(layer) ? grid.height : c_.window);
  distances.width = u32(sees_all(layer) ? grid.width : c_.window);
  VKF_ASSIGN(const TensorId table, b.table(vision_row(layer, "self.distances")));
  VKF_ASSIGN(const TensorId spread, add_grid_distances(b.graph(), qkv, table, distances));
  AttentionAttrs attrs =
      merged_attention(shape[0], shape[1], heads, grid_distance_width(e, distances), e);
  attrs.scale = 1.0f;
  return add_seen_attention(b, {.q = spread, .kv = spread}, attrs, taps, layer, "encoder_");
}

Result<TensorId> SamVision::add_layer(ModelBuilder& b, const ForwardTaps& taps, int64_t layer,
                                      TensorId x) const {
  Graph& g = b.graph();
  const int64_t batch = g.tensor(x).shape[0];
  VKF_ASSIGN(TensorId h, add_named_norm(b, c_.stack, vision_row(layer, "self.norm"), x));
  const bool all = sees_all(layer);
  TensorId back = kNoTensor;
  if (!all) {
    const WindowGrid grid = windows_of(layer);
    const TensorId cut =
        b.host_tensor("vision.windows", DType::kU32, {batch * grid.windows(), grid.area()},
                      window_rows(grid, batch));
    back = b.host_tensor("vision.tokens", DType::kU32, {batch, grid.tokens.count()},
                         unwindow_rows(grid, batch));
    VKF_ASSIGN(h, add_gather_rows(g, {.x = h, .indices = cut}));
  }
  VKF_ASSIGN(h, attend(b, taps, layer, h));
  if (!all) {
    VKF_ASSIGN(h, add_gather_rows(g, {.x = h, .indices = back}));
  }
  VKF_ASSIGN(x, add_named_linear(b, vision_row(layer, "self.out"), h, {.residual = x}));
  return add_picture_feed_forward(b, c_.stack, "vision." + std::to_string(layer), x);
}

Result<FeatureMap> SamVision::build(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  const PictureEmbedding& e = c_.embedding;
  const TensorId pixels = add_pixel_values(b, e.picture.channels, shape);
  TensorId x = kNoTensor;
  if (e.positions.empty()) {
    PatchConv conv{.rows = e.patches};
    conv.window.kernel_height = conv.window.stride_height = u32(e.patch.height);
    conv.window.kernel_width = conv.window.stride_width = u32(e.patch.width);
    VKF_ASSIGN(x, add_patch_conv(b, pixels, {}, conv));
  } else {
    VKF_ASSIGN(const TensorId table, b.table(e.positions));
    VKF_ASSIGN(x, add_patch_tokens(b, e, e.grid(), pixels, table));
  }
  for (int64_t i = 0; i < c_.stack.layers; ++i) {
    if (taps.hidden_states == ForwardTaps::Tap::kOn) {
      b.mark_output(x, "encoder_hidden_states." + std::to_string(i));
    }
    VKF_ASSIGN(x, add_layer(b, taps, i, x));
  }
  // The neck's norms have an epsilon that no configuration changes.
  const StackConfig neck{.epsilon = 1e-6f};
  VKF_ASSIGN(FeatureMap y, add_feature_conv(b, {"neck.1"}, {x, e.grid()}));
  VKF_ASSIGN(y.states, add_named_norm(b, neck, "neck.1.norm", y.states));
  VKF_ASSIGN(y, add_feature_conv(b, {"neck.2", kNeckKernel}, y));
  VKF_ASSIGN(y.states, add_named_norm(b, neck, "neck.2.norm", y.states));
  return y;
}

Result<SamVision::Config> SamVision::read(const JsonConfig& config) {
  Config c;
  StackConfig& s = c.stack;
  VKF_ASSIGN(c.embedding, read_picture_embedding(
                              config, {.picture = {1024, 1024}, .patch = 16, .class_tokens = 0}));
  VKF_ASSIGN(s.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(s.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(s.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_CHECK(head_width(config, s.width, s.heads));
  VKF_ASSIGN(const double ratio, config.get_double_or("mlp_ratio", 4.0));
  const double ffn = static_cast<double>(s.width) * ratio;
  if (!(ffn >= 1 && ffn <= kMostWidth)) {
    return invalid_file(
        message({"[mlp_ratio] of ", config.where(), " is ", ratio, ", which leaves ", ffn,
                 " features, but there must be 1 to ", kMostWidth, "."}));
  }
  VKF_ASSIGN(s.ffn, get_size_or(config, "mlp_dim", static_cast<int64_t>(ffn), kMostWidth));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "gelu"));
  VKF_ASSIGN(s.epsilon, get_epsilon(config, "layer_norm_eps", 1e-6));
  VKF_ASSIGN(c.bias, config.get_bool_or("qkv_bias", true));
  VKF_ASSIGN(c.distances, config.get_bool_or("use_rel_pos", true));
  VKF_ASSIGN(const bool positions, config.get_bool_or("use_abs_pos", true));
  c.embedding.patches = "vision.patches";
  if (positions) c.embedding.positions = "vision.positions";
  VKF_ASSIGN(c.window, config.get_int_or("window_size", 14));
  if (c.window < 0 || c.window > kMostSamWindow) {
    return invalid_file(message({"[window_size] of ", config.where(), " is ", c.window,
                                 ", but must be 0 to ", kMostSamWindow, "."}));
  }
  VKF_ASSIGN(c.global, config.get_int_list_or("global_attn_indexes", {2, 5, 8, 11}));
  VKF_ASSIGN(c.channels, get_size_or(config, "output_channels", 256, kMostWidth));
  const GridSize grid = c.embedding.grid();
  const int64_t side = std::max(c.window, std::max(grid.height, grid.width));
  if (c.distances && s.head() + 2 * side > kMaxHeadWidth) {
    return unsupported(message({"[image_size] of ", config.where(), " makes ", grid.height, " x ",
                                grid.width, " patches, and heads have ", s.head(),
                                " columns, but relative positions need at "
                                "most ",
                                kMaxHeadWidth,
                                " columns and tokens of both sides; take a checkpoint for "
                                "smaller pictures."}));
  }
  return c;
}

}  // namespace vkformer
