// linear_attention: attention whose weights are products of features, in time and memory linear in
// the number of keys.
//
//   y_i = sum_j w_ij v_j / (sum_j w_ij + epsilon), w_ij = f(q_i) . f(k_j); causal: j <= i
//   elu:    f(x) = elu(x) + 1                                 (Katharopoulos et al. 2020)
//   favor:  f(x) = exp(w x' - |x'|^2 / 2 - c) + kernel_eps, x' = x E^(-1/4), one feature for each
//           row w of omega                                    (Performer: Choromanski et al. 2021)
//   q (B, H, T, E), k (B, H, S, E), v (B, H, S, Ev), omega (m, E) -> y (B, H, T, Ev)
//
// For a query, c is the maximum of w x' over its features. For keys, it is the maximum over all
// features and unmasked keys of the head. Without kernel_eps every c gives the same y; the kernels
// then take the ones that keep numbers in range. A masked key has no weight; a query whose weights
// sum to zero gives zeros. All sums go through the *state* sum_j f(k_j) [v_j | 1] of M (Ev + 1)
// numbers per head. M counts the features and, with kernel_eps, one constant more. The constant
// carries what kernel_eps adds to every weight, so that the rest can be rescaled when a larger c is
// found.
//
// A generation stores the state instead of keys and values: states (R, 2, H W), W = M (Ev + 1) + 2.
// A row has two lines by the parity of the position (shaders/include/parent_row.glsl).
#pragma once

#include "ops/attention.h"

namespace vkformer {

struct LinearAttentionInputs {
  TensorId x = kNoTensor;       // holds q (B, H, T, E), k (B, H, S, E) and v (B, H, S, Ev)
  TensorId omega = kNoTensor;   // (m, E), of favor only
  TensorId mask = kNoTensor;    // (B, ceil(S/32)), U32, bits as pack_key_mask makes them; or none
  TensorId states = kNoTensor;  // (R, 2, H W): a prompt leaves its state there; or none
};

// What a full pass and a step have in common.
struct LinearFeatureAttrs {
  enum class Map : uint8_t { kElu, kFavor } map = Map::kElu;
  float kernel_eps = 0.0f;  // added to every feature, of favor only; at least 0
  float epsilon = 0.0f;     // added to the denominator, of elu only; at least 0
};

struct LinearAttentionAttrs {
  LinearFeatureAttrs features;
  enum class Causal : uint8_t { kNo, kYes } causal = Causal::kNo;
  // Weights (B, Hsel, T, S) of heads first_head ... as a second output; a head_count of 0: all.
  enum class Maps : uint8_t { kNone, kChosen } maps = Maps::kNone;
  uint32_t first_head = 0;
  uint32_t head_count = 0;
  uint32_t batch = 1;        // B
  uint32_t heads = 1;        // H
  uint32_t queries = 1;      // T
  uint32_t keys = 1;         // S
  uint32_t head_width = 1;   // E, of q and k
  uint32_t value_width = 1;  // Ev, of v and y
  HeadLayout q{};
  HeadLayout k{};
  HeadLayout v{};
  HeadLayout y{};      // row_stride 0: that of y_shape (B, T, H * Ev)
  Shape y_shape = {};  // empty: (B, T, H * Ev)
  uint32_t beams = 1;  // rows of an item in `states`
};

struct LinearAttentionOutputs {
  TensorId y = kNoTensor;        // y_shape
  TensorId weights = kNoTensor;  // (B, Hsel, T, S), normalized, where asked for
};

// One token of every live slot, after the token before it.
struct LinearStepInputs {
  TensorId x = kNoTensor;         // (slots, any row width)
  TensorId omega = kNoTensor;     // (m, E), of favor only
  TensorId ancestry = kNoTensor;  // (R, C) or more words, U32
  TensorId states = kNoTensor;    // (R, 2, H W)
  TensorId state = kNoTensor;     // DecodeState and slot rows (words), U32
};

struct LinearStepAttrs {
  LinearFeatureAttrs features;
  uint32_t heads = 1;        // H
  uint32_t head_width = 1;   // E
  uint32_t value_width = 1;  // Ev
  uint32_t q_offset = 0;     // column of the first head in a row of x, in elements
  uint32_t k_offset = 0;
  uint32_t v_offset = 0;
  uint32_t beams = 1;     // rows of an item
  uint32_t capacity = 1;  // C, positions that the ancestry has room for
};

// W of these features: M (Ev + 1) + 2, omega_rows the m of favor.
int64_t linear_state_width(const LinearFeatureAttrs& features, int64_t omega_rows,
                           int64_t head_width, int64_t value_width);

// y's description, or why the inputs do not fit. The inputs are x (any shape that the layouts stay
// inside), omega (m, E) or null, mask (B, ceil(S/32)) or null.
Result<TensorDesc> check_linear_attention(const TensorDesc& x, const TensorDesc* omega,
                                          const TensorDesc* mask,
                                          const LinearAttentionAttrs& attrs);
// The same of a step: x (slots, any), omega (m, E) or null, states (R, 2, H W) -> y (slots, H Ev).
Result<TensorDesc> check_linear_attention_step(const TensorDesc& x, const TensorDesc* omega,
                                               const TensorDesc& states,
                                               const LinearStepAttrs& attrs);

// Adds the node to the graph.
Result<LinearAttentionOutputs> add_linear_attention(Graph& graph,
                                                    const LinearAttentionInputs& inputs,
                                                    const LinearAttentionAttrs& attrs);
// Adds the node to a decoding step's graph and returns y (slots, H Ev).
Result<TensorId> add_linear_attention_step(Graph& graph, const LinearStepInputs& inputs,
                                           const LinearStepAttrs& attrs);

Status lower_linear_attention(LowerContext& context, const Node& node);

}  // namespace vkformer
