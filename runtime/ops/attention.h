// attention: y = softmax((softcap(scale (q k^T + relative)) + alibi + bias) / temperature) v,
// fused, in one pass over the keys (Vaswani et al. 2017; online softmax of Milakov and Gimelshein
// 2018).
//
//   q (B, H, T, E), k (B, Hkv, S, E), v (B, Hkv, S, Ev) -> y (B, H, T, Ev)
//
// With sink scores (H) among the terms, each head's score joins the softmax as one more column
// without a value. The weights of the keys then add up to less than 1 (OpenAI, 2025, gpt-oss).
//
// k and v lie in one binding, which may also be q's (a merged projection). Where each operand lies
// is said by a HeadLayout. Query head h reads key/value head h / (H / Hkv). A query without an
// allowed key gives zeros. A decoding step has its own form: ops/attention_step.h.
#pragma once

#include <memory>
#include <optional>

#include "ops/op.h"
#include "ops/score_terms.h"
#include "params/attention.h"

namespace vkformer {

// The largest E and Ev that the kernels take.
inline constexpr uint32_t kMaxHeadWidth = 256;
// The same of a decoding step.
inline constexpr uint32_t kMaxStepHeadWidth = 576;

struct AttentionInputs {
  TensorId q = kNoTensor;      // holds (B, H, T, E)
  TensorId kv = kNoTensor;     // holds k (B, Hkv, S, E) and v (B, Hkv, S, Ev)
  TensorId terms = kNoTensor;  // masks and biases (words), U32, as pack_score_terms makes them
};

// Relative positions (Shaw et al. 2018; Dai et al. 2019; He et al. 2021): of pair (i, j) row d =
// clamp(j - i - causal_offset, -reach, reach) + reach counts. They begin `offset` elements into kv,
// one after the other, with Hr = H or 1:
//   keys (2R + 1, Hr, E), which q is multiplied with
//   queries (2R + 1, Hr, E), which k is multiplied with
//   biases (2, H, E), the first added to q for k, the second for the keys of positions
//   values (2R + 1, Hr, Ev), or products (B, H, S, 2R + 1), of which s_jd is added to q.k
// Products are those of k with `queries` where a matrix product made them before. That is faster
// and takes memory for every key and distance.
struct RelativePositions {
  uint32_t kinds = 0;   // VKF_RELATIVE_KEYS and what else there is; 0: none
  uint32_t offset = 0;  // elements of kv
  uint32_t reach = 0;   // R, in tokens
};

struct AttentionAttrs {
  uint32_t batch = 1;        // B
  uint32_t heads = 1;        // H
  uint32_t kv_heads = 1;     // Hkv, a divisor of H
  uint32_t queries = 1;      // T
  uint32_t keys = 1;         // S
  uint32_t head_width = 1;   // E, of q and k
  uint32_t value_width = 1;  // Ev, of v and y
  HeadLayout q{};
  HeadLayout k{};
  HeadLayout v{};
  HeadLayout y{};              // row_stride 0: that of y_shape (B, T, H * Ev)
  Shape y_shape = {};          // empty: (B, T, H * Ev)
  std::optional<float> scale;  // of q.k; absent: 1 / sqrt(E)
  float temperature = 1.0f;    // divides the whole score; above 0
  float softcap = 0.0f;        // c: a scaled score s becomes c tanh(s / c), before biases; 0: none
  RelativePositions relative = {};
  ScoreTermsParams terms = no_score_terms();
  // Keys that a query visits, at the most or on average: an estimate for splitting long work. It is
  // set where sparse terms leave fewer keys than causal masks and windows do, or where global
  // tokens add some. 0: unknown.
  uint32_t visited = 0;
  // Keys that kQueryNeighbors queries visit in all, where a block map makes that more than S.
  uint32_t most_visited = 0;
  // The terms' words, where the host has them: then the cost is exact whatever they hide.
  std::shared_ptr<const std::vector<uint32_t>> known_terms = nullptr;
  // kVisitedKeys: y (B, H, T) is how many keys the kernel visits for each query, and nothing else.
  enum class Report : uint8_t { kValues, kVisitedKeys } report = Report::kValues;
};

// Layout of heads side by side in rows of `width` elements, from column `column` on, as a (merged)
// projection (B, tokens, width) has them.
HeadLayout merged_rows(uint32_t tokens, uint32_t width, uint32_t column, uint32_t head_width);
// Layout of a contiguous (B, heads, tokens, head_width) that starts `offset` elements into its
// tensor.
HeadLayout separate_heads(uint32_t heads, uint32_t tokens, uint32_t head_width, uint32_t offset);

// y's description, or why the inputs do not fit: q, kv (any shape that the layouts stay inside),
// terms (words) or null.
Result<TensorDesc> check_attention(const TensorDesc& q, const TensorDesc& kv,
                                   const TensorDesc* terms, const AttentionAttrs& attrs);

// Adds the node and returns y.
Result<TensorId> add_attention(Graph& graph, const AttentionInputs& inputs,
                               const AttentionAttrs& attrs);

Status lower_attention(LowerContext& context, const Node& node);

// Shared with attention_weights. Whether `terms` (words, or null) holds everything that the offsets
// of `params` point at; dims is B, H, T, S.
Status check_terms(OpId op, const TensorDesc* terms, const ScoreTermsParams& params,
                   std::span<const uint32_t, 4> dims);
// Whether (batch, heads, tokens, width) by `layout` stays inside `t`; `role` names it.
Status check_layout(OpId op, const TensorDesc& t, const char* role, const HeadLayout& layout,
                    std::span<const uint32_t, 4> dims);
// Whether the relative positions stay inside `kv`.
Status check_relative(OpId op, const TensorDesc& kv, const AttentionAttrs& attrs);
// Whether the sizes, scale, temperature and cap are usable; no width may exceed `most_width`.
Status check_attention_numbers(OpId op, const AttentionAttrs& attrs,
                               uint32_t most_width = kMaxHeadWidth);
// A cap of scores as the kernels take it: the bits of a float; 0: none.
uint32_t softcap_bits(float softcap);
// Why a cap of scores is not usable; empty: it is, or there is none.
std::string softcap_error(float softcap);

}  // namespace vkformer
