#include "model/blocks/latent_layer.h"

#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/attention_weights.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/softmax.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;

constexpr float kEpsilon = 1e-5f;  // of all norms, whatever the configuration says

// One head may be as wide as it likes, by products that keep the scores.
bool is_wide(const LatentLayer& layer) {
  return layer.heads == 1 && std::max(layer.qk, layer.v) > kMostHeadWidth;
}

Result<TensorId> norm(ModelBuilder& b, const std::string& name, TensorId x) {
  return add_named_norm(b, StackConfig{.epsilon = kEpsilon}, name, x);
}

// x (T, D) or (B, T, D) -> (B, T, D).
Result<TensorId> repeated(ModelBuilder& b, const LatentLayer& layer, const LatentRun& run,
                          TensorId x) {
  if (b.graph().tensor(x).shape.size() == 3) return x;
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < run.batch; ++i) {
    for (int64_t t = 0; t < run.queries; ++t) rows.push_back(u32(t));
  }
  const TensorId indices =
      b.host_tensor(layer.rows + ".repeat", DType::kU32, {run.batch, run.queries}, std::move(rows));
  return add_gather_rows(b.graph(), {.x = x, .indices = indices});
}

// Whether this layer's map is wanted, of a head that it has.
bool is_tapped(const LatentLayer& layer, const LatentRun& run) {
  return !run.map.empty() && run.taps.attentions == Tap::kOn &&
         run.taps.attention_head < layer.heads;
}

// Queries, keys and values of one layer, each (.., H E) in its own tensor.
struct Projected {
  TensorId q = kNoTensor;
  TensorId k = kNoTensor;
  TensorId v = kNoTensor;
};

Result<TensorId> attend(ModelBuilder& b, const LatentLayer& layer, const LatentRun& run,
                        const Projected& x) {
  Graph& g = b.graph();
  VKF_ASSIGN(const TensorId kv, add_concat_columns(g, x.k, x.v));
  const uint32_t row = u32(layer.qk + layer.v);
  AttentionAttrs a;
  a.batch = u32(run.batch);
  a.heads = a.kv_heads = u32(layer.heads);
  a.queries = u32(run.queries);
  a.keys = u32(run.keys);
  a.head_width = u32(layer.qk / layer.heads);
  a.value_width = u32(layer.v / layer.heads);
  a.q = merged_rows(a.queries, u32(layer.qk), 0, a.head_width);
  if (g.tensor(x.q).shape.size() == 2) a.q.batch_stride = 0;
  a.k = merged_rows(a.keys, row, 0, a.head_width);
  a.v = merged_rows(a.keys, row, u32(layer.qk), a.value_width);
  if (run.mask != kNoTensor) a.terms.key_mask_offset = 0;
  const AttentionInputs inputs{.q = x.q, .kv = kv, .terms = run.mask};
  if (is_tapped(layer, run)) {
    AttentionWeightsAttrs weights{.attention = a};
    if (run.taps.attention_head >= 0) {
      weights.first_head = u32(run.taps.attention_head);
      weights.head_count = 1;
    }
    if (run.taps.raw_scores == Tap::kOn) {
      weights.result = AttentionWeightsAttrs::Result::kScores;
    }
    VKF_ASSIGN(const TensorId map, add_attention_weights(g, inputs, weights));
    b.mark_output(map, run.map);
  }
  return add_attention(g, inputs, a);
}

// The same of one head that is wider than the fused kernels take.
Result<TensorId> attend_wide(ModelBuilder& b, const LatentLayer& layer, const LatentRun& run,
                             const Projected& x) {
  Graph& g = b.graph();
  if (is_tapped(layer, run) && run.taps.raw_scores == Tap::kOn) {
    return unsupported(
        message({"[", run.map, "] scores before the softmax were asked for, but a head of ",
                 layer.qk, " columns has none to show; ask for probabilities"}));
  }
  const bool same = g.tensor(x.q).shape.size() == 2;
  g.tensor(x.q).shape = {same ? 1 : run.batch, 1, run.queries, layer.qk};
  g.tensor(x.k).shape = {run.batch, 1, run.keys, layer.qk};
  g.tensor(x.v).shape = {run.batch, 1, run.keys, layer.v};
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(layer.qk)));
  VKF_ASSIGN(const TensorId scores,
             add_matmul(g, x.q, x.k, kNoTensor, {.trans_b = true, .alpha = scale}));
  SoftmaxAttrs attrs;
  if (run.mask != kNoTensor) attrs.terms.key_mask_offset = 0;
  const TensorId terms =
      run.mask != kNoTensor ? run.mask : b.host_tensor("no_terms", DType::kU32, {1}, {0u});
  VKF_ASSIGN(const TensorId map, add_softmax(g, scores, terms, attrs));
  if (is_tapped(layer, run)) b.mark_output(map, run.map);
  return add_matmul(g, map, x.v, kNoTensor, {});
}

}  // namespace

Status check_latent_layer(const LatentLayer& layer, const std::string& where) {
  for (const int64_t width : {layer.qk, layer.v}) {
    const bool divides = width >= 1 && width % layer.heads == 0;
    if (!divides) {
      return invalid_file(
          message({"[qk_channels] or [v_channels] in ", where, " makes [", layer.from, "] ", width,
                   " columns wide, which its ", layer.heads, " heads do not divide"}));
    }
    if (layer.heads == 1 || width / layer.heads <= kMostHeadWidth) continue;
    return unsupported(
        message({"[qk_channels] or [v_channels] in ", where, " makes the heads of [", layer.from,
                 "] ", width / layer.heads, " columns wide, but at most ", kMostHeadWidth,
                 " are supported where there is more than one head"}));
  }
  if (layer.input > 0 || layer.v == layer.width) return {};
  return invalid_file(
      message({"[v_channels] in ", where, " is ", layer.v, ", but the latents of [", layer.from,
               "] are ", layer.width, " wide and its output is added to them"}));
}

void add_latent_layer_rows(const LatentLayer& layer, WeightTable& table) {
  const std::string& to = layer.rows;
  const std::string self = layer.from + "attention.self.";
  const int64_t d = layer.width;
  table.rows.push_back(norm_row(to + ".norm", self + "layernorm1", d));
  if (layer.input > 0) {
    table.rows.push_back(norm_row(to + ".kv_norm", self + "layernorm2", layer.input));
  }
  table.rows.push_back(linear_row(to + ".q", {self + "query"}, layer.qk, d));
  table.rows.push_back(linear_row(to + ".k", {self + "key"}, layer.qk, layer.source()));
  table.rows.push_back(linear_row(to + ".v", {self + "value"}, layer.v, layer.source()));
  table.rows.push_back(
      linear_row(to + ".out", {layer.from + "attention.output.dense"}, d, layer.v));
  table.rows.push_back(norm_row(to + ".ffn.norm", layer.from + "layernorm", d));
  table.rows.push_back(linear_row(to + ".ffn.up", {layer.from + "mlp.dense1"}, layer.ffn, d));
  table.rows.push_back(linear_row(to + ".ffn.down", {layer.from + "mlp.dense2"}, d, layer.ffn));
}

Result<TensorId> add_latent_layer(ModelBuilder& b, const LatentLayer& layer, const LatentRun& run,
                                  TensorId x) {
  const std::string& rows = layer.rows;
  VKF_ASSIGN(const TensorId h, norm(b, rows + ".norm", x));
  TensorId source = h;
  if (run.inputs != kNoTensor) {
    VKF_ASSIGN(source, norm(b, rows + ".kv_norm", run.inputs));
  }
  Projected p;
  VKF_ASSIGN(p.q, add_named_linear(b, rows + ".q", h));
  VKF_ASSIGN(p.k, add_named_linear(b, rows + ".k", source));
  VKF_ASSIGN(p.v, add_named_linear(b, rows + ".v", source));
  b.graph().set_scope(rows);
  VKF_ASSIGN(const TensorId y,
             is_wide(layer) ? attend_wide(b, layer, run, p) : attend(b, layer, run, p));
  LinearAttrs out;
  const Shape plain = {run.batch, run.queries, layer.width};
  if (layer.residual == LatentLayer::Residual::kYes) {
    VKF_ASSIGN(out.residual, repeated(b, layer, run, x));
    if (is_wide(layer)) {
      b.graph().tensor(out.residual).shape = {run.batch, 1, run.queries, layer.width};
    }
  }
  VKF_ASSIGN(const TensorId attended, add_named_linear(b, rows + ".out", y, out));
  b.graph().tensor(attended).shape = plain;
  if (out.residual != kNoTensor) b.graph().tensor(out.residual).shape = plain;
  VKF_ASSIGN(TensorId f, norm(b, rows + ".ffn.norm", attended));
  VKF_ASSIGN(f, add_named_linear(b, rows + ".ffn.up", f, {.activation = layer.activation}));
  return add_named_linear(b, rows + ".ffn.down", f, {.residual = attended});
}

}  // namespace vkformer
