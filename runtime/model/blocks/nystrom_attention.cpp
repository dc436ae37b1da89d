#include "model/blocks/nystrom_attention.h"

#include "ops/attention_weights.h"
#include "ops/concat_columns.h"
#include "ops/matmul.h"
#include "ops/segment_means.h"

namespace vkformer {
namespace {

constexpr int kInverseSteps = 6;  // as published

// Landmarks of what lies at `layout`, head by head: (B * H, M, E).
Result<TensorId> add_landmarks(Graph& g, TensorId x, const NystromAttrs& attrs,
                               const HeadLayout& layout) {
  const AttentionAttrs& a = attrs.attention;
  return add_segment_means(
      g, x,
      {.batch = a.batch,
       .heads = a.heads,
       .tokens = a.keys,
       .segments = attrs.landmarks,
       .head_width = a.head_width,
       .x = layout,
       .y = separate_heads(a.heads, attrs.landmarks, a.head_width, 0),
       .y_shape = {int64_t{a.batch} * a.heads, attrs.landmarks, a.head_width}});
}

// A = softmax(q~ k~^T) (B * H, M, M).
Result<TensorId> add_landmark_weights(Graph& g, TensorId q, TensorId k, const NystromAttrs& attrs) {
  AttentionWeightsAttrs weights{.attention = attrs.attention};
  AttentionAttrs& a = weights.attention;
  a.queries = a.keys = attrs.landmarks;
  a.q = a.k = separate_heads(a.heads, attrs.landmarks, a.head_width, 0);
  a.terms = no_score_terms();
  VKF_ASSIGN(const TensorId y, add_attention_weights(g, {.q = q, .kv = k}, weights));
  g.tensor(y).shape = {int64_t{a.batch} * a.heads, attrs.landmarks, attrs.landmarks};
  return y;
}

// Z <- Z (13 I - AZ (15 I - AZ (7 I - AZ))) / 4. Its brackets are multiplied out, so that every
// step is four products:
//   u = (AZ)^2 - 7 AZ, r = AZ u + 15 AZ, Z <- (13 Z - Z r) / 4.
Result<TensorId> add_inverse(Graph& g, TensorId a, TensorId ones, const NystromAttrs& attrs) {
  VKF_ASSIGN(const TensorId sums, add_matmul(g, ones, a, kNoTensor, {}));
  VKF_ASSIGN(TensorId z, add_inverse_start(g, a, sums, {.maximum = attrs.maximum}));
  for (int step = 0; step < kInverseSteps; ++step) {
    VKF_ASSIGN(const TensorId az, add_matmul(g, a, z, kNoTensor, {}));
    VKF_ASSIGN(const TensorId u, add_matmul(g, az, az, az, {.beta = -7.0f}));
    VKF_ASSIGN(const TensorId r, add_matmul(g, az, u, az, {.beta = 15.0f}));
    VKF_ASSIGN(z, add_matmul(g, z, r, z, {.alpha = -0.25f, .beta = 3.25f}));
  }
  return z;
}

// G v (B * H, M, Ev).
Result<TensorId> add_gathered_values(Graph& g, const NystromInputs& inputs, TensorId q,
                                     const NystromAttrs& attrs) {
  AttentionAttrs a = attrs.attention;
  a.queries = attrs.landmarks;
  a.q = separate_heads(a.heads, attrs.landmarks, a.head_width, 0);
  a.y = separate_heads(a.heads, attrs.landmarks, a.value_width, 0);
  a.y_shape = {int64_t{a.batch} * a.heads, attrs.landmarks, a.value_width};
  return add_attention(g, {.q = q, .kv = inputs.x, .terms = inputs.terms}, a);
}

// y = F W, with [k~ | W] as keys and values.
Result<TensorId> add_spread_values(Graph& g, TensorId x, TensorId kv, const NystromAttrs& attrs) {
  AttentionAttrs a = attrs.attention;
  const uint32_t row = a.head_width + a.value_width;
  a.keys = attrs.landmarks;
  a.k = separate_heads(a.heads, attrs.landmarks, row, 0);
  a.v = separate_heads(a.heads, attrs.landmarks, row, a.head_width);
  a.terms = no_score_terms();
  return add_attention(g, {.q = x, .kv = kv}, a);
}

}  // namespace

Result<NystromResult> add_nystrom_attention(Graph& g, const NystromInputs& inputs,
                                            const NystromAttrs& attrs) {
  const AttentionAttrs& a = attrs.attention;
  NystromResult result;
  VKF_ASSIGN(const TensorId q, add_landmarks(g, inputs.x, attrs, a.q));
  VKF_ASSIGN(result.landmark, add_landmarks(g, inputs.x, attrs, a.k));
  VKF_ASSIGN(const TensorId core, add_landmark_weights(g, q, result.landmark, attrs));
  VKF_ASSIGN(result.inverse, add_inverse(g, core, inputs.ones, attrs));
  VKF_ASSIGN(const TensorId gathered, add_gathered_values(g, inputs, q, attrs));
  VKF_ASSIGN(const TensorId values, add_matmul(g, result.inverse, gathered, kNoTensor, {}));
  VKF_ASSIGN(const TensorId kv, add_concat_columns(g, result.landmark, values));
  VKF_ASSIGN(result.y, add_spread_values(g, inputs.x, kv, attrs));
  return result;
}

Result<TensorId> add_nystrom_weights(Graph& g, const NystromInputs& inputs,
                                     const NystromAttrs& attrs, const NystromResult& result) {
  AttentionWeightsAttrs weights{.attention = attrs.attention};
  AttentionAttrs& a = weights.attention;
  a.keys = attrs.landmarks;
  a.k = separate_heads(a.heads, attrs.landmarks, a.head_width, 0);
  a.terms = no_score_terms();
  VKF_ASSIGN(const TensorId f,
             add_attention_weights(g, {.q = inputs.x, .kv = result.landmark}, weights));
  g.tensor(f).shape = {int64_t{a.batch} * a.heads, a.queries, attrs.landmarks};
  return add_matmul(g, f, result.inverse, kNoTensor, {});
}

}  // namespace vkformer
