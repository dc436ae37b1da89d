#include "model/sam_decoder.h"

#include <numeric>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/picture_layers.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/matmul.h"
#include "ops/move_columns.h"

namespace vkformer {
namespace {

constexpr int64_t kMostMasks = 1 << 8;
constexpr int64_t kMaskLayers = 3;
// By which attention between tokens and features is narrower in layers, whatever the configuration
// says of the last one.
constexpr int64_t kLayerNarrower = 2;
constexpr int64_t kLarger = 2;              // of each transposed convolution
constexpr float kFinalNormEpsilon = 1e-5f;  // which no configuration changes
constexpr float kUpscaleEpsilon = 1e-6f;    // likewise

FeatureEnlargement enlargement_of(const SamDecoder& d, int64_t step) {
  return {"upscale." + std::to_string(step), kLarger, d.stack.width / (step == 1 ? 4 : 8)};
}

// Rows q, k, v and out of an attention.
void add_attention_rows(const std::string& row, const std::string& module, int64_t width,
                        int64_t inner, WeightTable& table) {
  for (const char* part : {"q", "k", "v"}) {
    table.rows.push_back(
        linear_row(row + "." + part, {module + "." + part + "_proj"}, inner, width));
  }
  table.rows.push_back(linear_row(row + ".out", {module + ".out_proj"}, width, inner));
}

// Rows `row`.0 to `row`.n of a run of layers: proj_in, layers.i, proj_out.
void add_mlp_rows(const std::string& row, const std::string& module,
                  const std::vector<int64_t>& widths, WeightTable& table) {
  const size_t count = widths.size() - 1;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = i == 0           ? "proj_in"
                             : i + 1 == count ? "proj_out"
                                              : "layers." + std::to_string(i - 1);
    table.rows.push_back(
        linear_row(row + "." + std::to_string(i), {module + "." + name}, widths[i + 1], widths[i]));
  }
}

Result<TensorId> add_mlp(ModelBuilder& b, const std::string& row, int64_t layers, TensorId x) {
  for (int64_t i = 0; i < layers; ++i) {
    const auto kind = i + 1 < layers ? ActivationKind::kRelu : ActivationKind::kNone;
    VKF_ASSIGN(x, add_named_linear(b, row + "." + std::to_string(i), x, {.activation = kind}));
  }
  return x;
}

std::vector<int64_t> quality_widths(const SamDecoder& d) {
  std::vector<int64_t> widths(static_cast<size_t>(d.quality_layers + 1), d.quality_width);
  widths.front() = d.stack.width;
  widths.back() = d.mask_tokens();
  return widths;
}

// What a decoder goes over.
struct TwoWay {
  ModelBuilder& b;
  const SamDecoder& d;
  const ForwardTaps& taps;
  TensorId points;     // (R, N, D), what tokens are made of
  TensorId positions;  // (grid, D)
  TensorId order;      // (R, grid), every row of the features

  // Features with their positions.
  Result<TensorId> placed(const std::string& row, TensorId features) const {
    b.graph().set_scope(row);
    return add_gather_rows(b.graph(), {.x = features, .indices = order, .addend = positions});
  }
  Result<TensorId> with_points(const std::string& row, TensorId tokens) const {
    b.graph().set_scope(row);
    return add_combine(b.graph(), tokens, points, {});
  }
};

// An attention: its rows of weights, and its map <stack>attentions.`map`.
struct TwoWaySite {
  std::string row;
  std::string stack;  // "decoder_" or "cross_"
  int64_t map = 0;
};

// Queries (R, T, D) over keys and values (R, S, D), before its norm; `residual` may be none.
Result<TensorId> add_two_way_attention(const TwoWay& run, const TwoWaySite& site, TensorId query,
                                       TensorId key, TensorId value, TensorId residual) {
  ModelBuilder& b = run.b;
  const std::string& row = site.row;
  VKF_ASSIGN(const TensorId q, add_named_linear(b, row + ".q", query));
  VKF_ASSIGN(const TensorId k, add_named_linear(b, row + ".k", key));
  VKF_ASSIGN(const TensorId v, add_named_linear(b, row + ".v", value));
  b.graph().set_scope(row);
  VKF_ASSIGN(const TensorId kv, add_concat_columns(b.graph(), k, v));
  const Shape queries = b.graph().tensor(q).shape, keys = b.graph().tensor(k).shape;
  AttentionAttrs attrs;
  attrs.batch = u32(queries[0]);
  attrs.heads = attrs.kv_heads = u32(run.d.stack.heads);
  attrs.queries = u32(queries[1]);
  attrs.keys = u32(keys[1]);
  attrs.head_width = attrs.value_width = u32(queries[2] / run.d.stack.heads);
  attrs.q = merged_rows(attrs.queries, u32(queries[2]), 0, attrs.head_width);
  attrs.k = merged_rows(attrs.keys, u32(2 * queries[2]), 0, attrs.head_width);
  attrs.v = merged_rows(attrs.keys, u32(2 * queries[2]), u32(queries[2]), attrs.head_width);
  VKF_ASSIGN(const TensorId y,
             add_seen_attention(b, {.q = q, .kv = kv}, attrs, run.taps, site.map, site.stack));
  VKF_ASSIGN(const TensorId out, add_named_linear(b, row + ".out", y));
  if (residual == kNoTensor) return add_named_norm(b, run.d.stack, row + ".norm", out);
  return add_named_norm(b, run.d.stack, row + ".norm", out, residual);
}

// One layer: tokens, then features.
Status add_two_way_layer(const TwoWay& run, int64_t layer, TensorId& tokens, TensorId& features) {
  ModelBuilder& b = run.b;
  const std::string row = "decoder." + std::to_string(layer) + ".";
  const TwoWaySite self = {row + "self", "decoder_", layer};
  if (layer == 0) {
    VKF_ASSIGN(tokens, add_two_way_attention(run, self, tokens, tokens, tokens, kNoTensor));
  } else {
    VKF_ASSIGN(const TensorId placed, run.with_points(row + "self.placed", tokens));
    VKF_ASSIGN(tokens, add_two_way_attention(run, self, placed, placed, tokens, tokens));
  }
  VKF_ASSIGN(const TensorId keys, run.placed(row + "features.placed", features));
  VKF_ASSIGN(const TensorId asking, run.with_points(row + "features.asked", tokens));
  VKF_ASSIGN(tokens, add_two_way_attention(run, {row + "features", "cross_", 2 * layer}, asking,
                                           keys, features, tokens));
  VKF_ASSIGN(TensorId h,
             add_named_linear(b, row + "ffn.up", tokens, {.activation = run.d.stack.activation}));
  VKF_ASSIGN(h, add_named_linear(b, row + "ffn.down", h));
  VKF_ASSIGN(tokens, add_named_norm(b, run.d.stack, row + "ffn.norm", h, tokens));
  VKF_ASSIGN(const TensorId asked, run.with_points(row + "tokens.placed", tokens));
  VKF_ASSIGN(features, add_two_way_attention(run, {row + "tokens", "cross_", 2 * layer + 1}, keys,
                                             asked, tokens, features));
  return {};
}

// Token `index` of every row: (R, D).
Result<TensorId> add_one_token(ModelBuilder& b, const std::string& row, TensorId tokens,
                               int64_t index) {
  const Shape shape = b.graph().tensor(tokens).shape;
  b.graph().set_scope(row);
  return add_columns(b.graph(), tokens,
                     {.offset = u32(index * shape[2]), .stride = u32(shape[1] * shape[2])},
                     {shape[0], shape[2]});
}

// Features four times as high and wide, with an eighth of the channels.
Result<FeatureMap> upscale(ModelBuilder& b, const SamDecoder& d, const FeatureMap& x) {
  VKF_ASSIGN(FeatureMap y, add_enlarged(b, enlargement_of(d, 1), x));
  const StackConfig norm{.epsilon = kUpscaleEpsilon};
  VKF_ASSIGN(y.states, add_named_norm(b, norm, "upscale.norm", y.states));
  VKF_ASSIGN(y.states, add_activation(b.graph(), y.states, {.kind = ActivationKind::kGelu}));
  VKF_ASSIGN(y, add_enlarged(b, enlargement_of(d, 2), y));
  VKF_ASSIGN(y.states, add_activation(b.graph(), y.states, {.kind = ActivationKind::kGelu}));
  return y;
}

// A row of factors for each mask but the first: (R, masks, D / 8).
Result<TensorId> mask_factors(ModelBuilder& b, const SamDecoder& d, TensorId tokens) {
  Graph& g = b.graph();
  const int64_t rows = g.tensor(tokens).shape[0];
  const int64_t width = d.stack.width / 8;
  const TensorId factors = g.add_temporary("factors", DType::kF32, {rows, d.masks, width});
  for (int64_t i = 0; i < d.masks; ++i) {
    const std::string row = "masks." + std::to_string(i + 1);
    VKF_ASSIGN(const TensorId token, add_one_token(b, row, tokens, 2 + i));
    VKF_ASSIGN(const TensorId own, add_mlp(b, row, kMaskLayers, token));
    VKF_CHECK(add_place_columns(g, own, factors,
                                {.offset = u32(i * width), .stride = u32(d.masks * width)}));
  }
  return factors;
}

}  // namespace

Result<SamDecoder> read_sam_decoder(const JsonConfig& config) {
  SamDecoder d;
  StackConfig& s = d.stack;
  VKF_ASSIGN(s.width, get_size_or(config, "hidden_size", 256, kMostWidth));
  VKF_ASSIGN(s.layers, get_size_or(config, "num_hidden_layers", 2, kMostLayers));
  VKF_ASSIGN(s.heads, get_size_or(config, "num_attention_heads", 8, kMostWidth));
  VKF_ASSIGN(s.ffn, get_size_or(config, "mlp_dim", 2048, kMostWidth));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "relu"));
  VKF_ASSIGN(s.epsilon, get_epsilon(config, "layer_norm_eps", 1e-6));
  VKF_ASSIGN(d.narrower, get_size_or(config, "attention_downsample_rate", 2, kMostWidth));
  VKF_ASSIGN(d.masks, get_size_or(config, "num_multimask_outputs", 3, kMostMasks));
  VKF_ASSIGN(d.quality_layers, get_size_or(config, "iou_head_depth", 3, kMostLayers));
  VKF_ASSIGN(d.quality_width, get_size_or(config, "iou_head_hidden_dim", 256, kMostWidth));
  VKF_CHECK(head_width(config, s.width, s.heads));
  if (s.width % 8 != 0 || s.width % d.narrower != 0 || s.width / d.narrower % s.heads != 0 ||
      s.width / kLayerNarrower % s.heads != 0 || d.quality_layers < 2) {
    return invalid_file(
        message({"[hidden_size], [attention_downsample_rate] and [iou_head_depth] of ",
                 config.where(), " are ", s.width, ", ", d.narrower, " and ", d.quality_layers,
                 ", but must be a multiple of 8, what leaves a multiple of the ", s.heads,
                 " heads, and at least 2."}));
  }
  return d;
}

void add_sam_decoder_rows(const SamDecoder& d, WeightTable& table) {
  const int64_t width = d.stack.width, inner = width / kLayerNarrower;
  const std::string transformer = "mask_decoder.transformer.";
  for (int64_t i = 0; i < d.stack.layers; ++i) {
    const std::string row = "decoder." + std::to_string(i) + ".";
    const std::string from = transformer + "layers." + std::to_string(i) + ".";
    add_attention_rows(row + "self", from + "self_attn", width, width, table);
    add_attention_rows(row + "features", from + "cross_attn_token_to_image", width, inner, table);
    add_attention_rows(row + "tokens", from + "cross_attn_image_to_token", width, inner, table);
    table.rows.push_back(norm_row(row + "self.norm", from + "layer_norm1", width));
    table.rows.push_back(norm_row(row + "features.norm", from + "layer_norm2", width));
    table.rows.push_back(norm_row(row + "ffn.norm", from + "layer_norm3", width));
    table.rows.push_back(norm_row(row + "tokens.norm", from + "layer_norm4", width));
    table.rows.push_back(linear_row(row + "ffn.up", {from + "mlp.lin1"}, d.stack.ffn, width));
    table.rows.push_back(linear_row(row + "ffn.down", {from + "mlp.lin2"}, width, d.stack.ffn));
  }
  add_attention_rows("decoder.last", transformer + "final_attn_token_to_image", width,
                     width / d.narrower, table);
  table.rows.push_back(norm_row("decoder.last.norm", transformer + "layer_norm_final_attn", width));
  add_enlarging_rows(enlargement_of(d, 1), "mask_decoder.upscale_conv1", width, table);
  add_enlarging_rows(enlargement_of(d, 2), "mask_decoder.upscale_conv2", width / 4, table);
  table.rows.push_back(norm_row("upscale.norm", "mask_decoder.upscale_layer_norm", width / 4));
  for (int64_t i = 1; i <= d.masks; ++i) {
    const std::string number = std::to_string(i);
    add_mlp_rows("masks." + number, "mask_decoder.output_hypernetworks_mlps." + number,
                 {width, width, width, width / 8}, table);
  }
  add_mlp_rows("quality", "mask_decoder.iou_prediction_head", quality_widths(d), table);
}

Status add_sam_decoder(ModelBuilder& b, const SamDecoder& d, const SamDecoderInputs& in,
                       int64_t batch, const ForwardTaps& taps) {
  Graph& g = b.graph();
  const int64_t rows = g.tensor(in.tokens).shape[0];
  const int64_t count = in.features.grid.count();
  std::vector<uint32_t> order(static_cast<size_t>(rows * count));
  std::iota(order.begin(), order.end(), 0u);
  const TensorId all =
      b.host_tensor("features.order", DType::kU32, {rows, count}, std::move(order));
  const TwoWay run{b, d, taps, in.tokens, in.positions, all};
  TensorId tokens = in.tokens;
  FeatureMap features = in.features;
  for (int64_t i = 0; i < d.stack.layers; ++i) {
    VKF_CHECK(add_two_way_layer(run, i, tokens, features.states));
  }
  VKF_ASSIGN(const TensorId asking, run.with_points("decoder.last.asked", tokens));
  VKF_ASSIGN(const TensorId keys, run.placed("decoder.last.placed", features.states));
  SamDecoder last = d;
  last.stack.epsilon = kFinalNormEpsilon;
  const TwoWaySite asked = {"decoder.last", "cross_", 2 * d.stack.layers};
  VKF_ASSIGN(tokens, add_two_way_attention({b, last, taps, in.tokens, in.positions, all}, asked,
                                           asking, keys, features.states, tokens));
  VKF_ASSIGN(const FeatureMap large, upscale(b, d, features));
  VKF_ASSIGN(const TensorId factors, mask_factors(b, d, tokens));
  g.set_scope("masks");
  VKF_ASSIGN(const TensorId product,
             add_matmul(g, factors, large.states, kNoTensor, {.trans_b = true}));
  // A copy, because a tensor has one shape: (B * P, masks, pixels) seen by row and column.
  VKF_ASSIGN(const TensorId masks, add_activation(g, product, {.kind = ActivationKind::kNone}));
  const int64_t prompts = rows / batch;
  g.tensor(masks).shape = {batch, prompts, d.masks, large.grid.height, large.grid.width};
  b.mark_output(masks, "pred_masks");
  VKF_ASSIGN(TensorId quality, add_one_token(b, "quality", tokens, 0));
  VKF_ASSIGN(quality, add_mlp(b, "quality", d.quality_layers, quality));
  // The first one is of the mask that stands alone.
  g.set_scope("quality.masks");
  VKF_ASSIGN(quality, add_columns(g, quality, {.offset = 1, .stride = u32(d.mask_tokens())},
                                  {batch, prompts, d.masks}));
  b.mark_output(quality, "iou_scores");
  return {};
}

}  // namespace vkformer
