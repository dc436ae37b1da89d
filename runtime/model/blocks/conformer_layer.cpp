#include "model/blocks/conformer_layer.h"

#include "base/narrow.h"
#include "model/blocks/picture_layers.h"
#include "model/blocks/relative_attention.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/conv.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr float kLayerEpsilon = 1e-5f;  // of all norms

std::string conformer_rows(int64_t layer) {
  return "layers." + std::to_string(layer);
}

// The table of the depthwise convolution with its batch norm.
Result<WeightRow> depthwise_row(const Checkpoint& checkpoint, const ConformerLayer& c,
                                std::string to, const std::string& from) {
  const int64_t d = c.width;
  const std::string conv = from + c.names.depthwise, norm = from + c.names.batch_norm + ".";
  VKF_ASSIGN(const std::vector<float> weight,
             read_floats(checkpoint, conv + ".weight", {d, 1, c.kernel}));
  std::vector<float> bias;
  if (c.conv == ConformerLayer::Biases::kYes) {
    VKF_ASSIGN(bias, read_floats(checkpoint, conv + ".bias", {d}));
  }
  VKF_ASSIGN(const std::vector<float> gain, read_floats(checkpoint, norm + "weight", {d}));
  VKF_ASSIGN(const std::vector<float> shift, read_floats(checkpoint, norm + "bias", {d}));
  VKF_ASSIGN(const std::vector<float> mean, read_floats(checkpoint, norm + "running_mean", {d}));
  VKF_ASSIGN(const std::vector<float> variance, read_floats(checkpoint, norm + "running_var", {d}));
  VKF_ASSIGN(std::vector<float> table,
             fold_batch_norm({.name = conv, .out = d, .weight = weight, .bias = bias},
                             {.gain = gain, .shift = shift, .mean = mean, .variance = variance}));
  return computed_row(std::move(to), std::move(table), d, c.kernel + 1);
}

Result<TensorId> layer_norm_of(const ConformerPass& pass, const std::string& name, TensorId x) {
  return add_named_norm(pass.b, StackConfig{.epsilon = kLayerEpsilon}, name, x);
}

// x + ffn(norm x) / 2.
Result<TensorId> half_feed_forward(const ConformerPass& pass, const ConformerLayer& c,
                                   const std::string& rows, TensorId x) {
  VKF_ASSIGN(TensorId h, layer_norm_of(pass, rows + ".norm", x));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".up", h, {.activation = c.activation}));
  VKF_ASSIGN(h, add_named_linear(pass.b, rows + ".down", h));
  return add_combine(pass.b.graph(), h, x, {.alpha = 0.5f});
}

// [q | k | v] where q and k are made of h turned, head by head, and v of h itself.
Result<TensorId> project_rotated(const ConformerPass& pass, const ConformerLayer& c,
                                 const std::string& rows, TensorId h) {
  ModelBuilder& b = pass.b;
  const int64_t e = c.width / c.heads;
  RotaryScaling scaling;
  scaling.theta = c.base;
  TensorId table = b.graph().find_external("rotary");
  if (table == kNoTensor) {
    VKF_ASSIGN(const std::vector<float> values,
               rotary_table(scaling, {.positions = pass.frames, .rotary_width = e}));
    table = b.host_floats("rotary", {pass.frames, e}, values);
  }
  b.graph().set_scope(rows);
  VKF_ASSIGN(const TensorId turned,
             add_rotary(b.graph(), {.x = h, .table = table},
                        {.heads = u32(c.heads), .head_width = u32(e), .tokens = u32(pass.frames)}));
  VKF_ASSIGN(const TensorId qk, add_named_linear(b, rows + ".qk", turned));
  VKF_ASSIGN(const TensorId v, add_named_linear(b, rows + ".v", h));
  return add_concat_columns(b.graph(), qk, v);
}

// h (B, T, D) -> (B, T, D), before the output projection.
Result<TensorId> conformer_attention(const ConformerPass& pass, const ConformerLayer& c,
                                     int64_t layer, TensorId h) {
  const std::string rows = conformer_rows(layer) + ".self";
  const int64_t d = c.width;
  TensorId qkv = kNoTensor;
  if (c.positions == ConformerLayer::Positions::kRotary) {
    VKF_ASSIGN(qkv, project_rotated(pass, c, rows, h));
  } else {
    VKF_ASSIGN(qkv, add_named_linear(pass.b, rows + ".qkv", h));
  }
  AttentionAttrs a;
  a.batch = u32(pass.batch);
  a.heads = a.kv_heads = u32(c.heads);
  a.queries = a.keys = u32(pass.frames);
  a.head_width = a.value_width = u32(d / c.heads);
  a.q = merged_rows(a.queries, u32(3 * d), 0, a.head_width);
  a.k = merged_rows(a.keys, u32(3 * d), u32(d), a.head_width);
  a.v = merged_rows(a.keys, u32(3 * d), u32(2 * d), a.head_width);
  if (pass.mask != kNoTensor) a.terms.key_mask_offset = 0;
  if (c.positions == ConformerLayer::Positions::kRelative) {
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
Result<TensorId> conformer_convolution(const ConformerPass& pass, const ConformerLayer& c,
                                       const std::string& rows, TensorId x) {
  VKF_ASSIGN(TensorId h, layer_norm_of(pass, rows + ".norm", x));
  VKF_ASSIGN(h,
             add_named_linear(pass.b, rows + ".gate", h,
                              {.activation = ActivationKind::kSigmoid, .gate = GatePairs::kPairs}));
  VKF_ASSIGN(const TensorId table, pass.b.table(rows + ".table"));
  ConvAttrs conv{.groups = u32(c.width)};
  conv.window.kernel_width = u32(c.kernel);
  conv.window.pad_left = u32((c.kernel - 1) / 2);
  VKF_ASSIGN(h, add_conv(pass.b.graph(), h, table, conv));
  VKF_ASSIGN(h, add_activation(pass.b.graph(), h, {c.activation}));
  return add_named_linear(pass.b, rows + ".out", h, {.residual = x});
}

}  // namespace

Status add_conformer_rows(const Checkpoint& checkpoint, const ConformerLayer& c, int64_t layer,
                          const std::string& from, WeightTable& table) {
  const int64_t d = c.width;
  const ConformerNames& names = c.names;
  const bool linear = c.linear == ConformerLayer::Biases::kYes;
  const bool conv = c.conv == ConformerLayer::Biases::kYes;
  const std::string to = conformer_rows(layer);
  const auto add = [&](bool biased, const std::string& row, const std::vector<std::string>& modules,
                       int64_t n, int64_t k) {
    std::vector<std::string> sources;
    for (const std::string& module : modules) sources.push_back(from + module);
    table.rows.push_back(biased_row(biased, to + row, sources, n, k));
  };
  const auto add_norm = [&](const std::string& row, const std::string& module) {
    table.rows.push_back(norm_row(to + row, from + module, d));
  };
  for (size_t i = 0; i < 2; ++i) {
    const std::string ffn = ".ffn" + std::to_string(i + 1);
    add_norm(ffn + ".norm", names.ffn_norm[i]);
    add(linear, ffn + ".up", {names.ffn_up[i]}, c.ffn, d);
    add(linear, ffn + ".down", {names.ffn_down[i]}, d, c.ffn);
  }
  add_norm(".self.norm", names.attention_norm);
  if (c.positions == ConformerLayer::Positions::kRotary) {
    add(linear, ".self.qk", {names.q, names.k}, 2 * d, d);
    add(linear, ".self.v", {names.v}, d, d);
  } else {
    add(linear, ".self.qkv", {names.q, names.k, names.v}, 3 * d, d);
  }
  if (c.positions == ConformerLayer::Positions::kRelative) {
    const int64_t e = d / c.heads;
    table.rows.push_back(table_row(to + ".self.u", {from + names.u}, {c.heads}, e));
    table.rows.push_back(table_row(to + ".self.v", {from + names.v_bias}, {c.heads}, e));
    table.rows.push_back(
        table_row(to + ".self.positions", {from + names.positions + ".weight"}, {d}, d));
  }
  add(linear, ".self.out", {names.out}, d, d);
  add_norm(".conv.norm", names.conv_norm);
  // Pairs of a gate and its value; the file has the values first.
  add(conv, ".conv.gate", {names.gate}, 2 * d, d);
  for (int64_t i = 0; i < d; ++i) {
    table.rows.back().row_order.push_back(u32(d + i));
    table.rows.back().row_order.push_back(u32(i));
  }
  VKF_ASSIGN(WeightRow depthwise, depthwise_row(checkpoint, c, to + ".conv.table", from));
  table.rows.push_back(std::move(depthwise));
  add(conv, ".conv.out", {names.conv_out}, d, d);
  add_norm(".norm", names.norm);
  return {};
}

Result<TensorId> add_conformer_layer(const ConformerPass& pass, const ConformerLayer& c,
                                     int64_t layer, TensorId x) {
  const std::string rows = conformer_rows(layer);
  VKF_ASSIGN(x, half_feed_forward(pass, c, rows + ".ffn1", x));
  VKF_ASSIGN(const TensorId h, layer_norm_of(pass, rows + ".self.norm", x));
  VKF_ASSIGN(const TensorId y, conformer_attention(pass, c, layer, h));
  VKF_ASSIGN(x, add_named_linear(pass.b, rows + ".self.out", y, {.residual = x}));
  VKF_ASSIGN(x, conformer_convolution(pass, c, rows + ".conv", x));
  VKF_ASSIGN(x, half_feed_forward(pass, c, rows + ".ffn2", x));
  return layer_norm_of(pass, rows + ".norm", x);
}

}  // namespace vkformer
