// sequence_projection: keys and values of every head projected along the sequence, so that
// attention sees P of them instead of S (Linformer: Wang et al. 2020).
//
//   k~ = E (m k), v~ = F (m v), m the key mask; the first S columns of E and F are used
//   k (B, H, S, E), v (B, H, S, Ev), E and F (P, N) for all heads or (H, P, N) -> kv
//
// kv holds k~ (B, H, P, E) and v~ (B, H, P, Ev) as projected_keys and projected_values say. After
// each of their rows follows the sum of the unmasked columns of E or F. Masked keys are not read.
#pragma once

#include "ops/attention.h"

namespace vkformer {

struct SequenceProjectionInputs {
  TensorId x = kNoTensor;     // holds k (B, H, S, E) and v (B, H, S, Ev)
  TensorId e = kNoTensor;     // (P, N) or (H, P, N), any shape of as many elements
  TensorId f = kNoTensor;     // the same; may be e itself
  TensorId mask = kNoTensor;  // (B, ceil(S/32)), U32, bits as pack_key_mask makes them; or none
};

struct SequenceProjectionAttrs {
  uint32_t batch = 1;        // B
  uint32_t heads = 1;        // H
  uint32_t keys = 1;         // S
  uint32_t head_width = 1;   // E
  uint32_t value_width = 1;  // Ev
  uint32_t projected = 1;    // P
  uint32_t reach = 1;        // N, at least S
  // Whether every head has its own matrices.
  enum class Matrices : uint8_t { kShared, kPerHead } matrices = Matrices::kShared;
  HeadLayout k{};
  HeadLayout v{};
};

// Where attention finds k~ and v~ in kv.
HeadLayout projected_keys(const SequenceProjectionAttrs& attrs);
HeadLayout projected_values(const SequenceProjectionAttrs& attrs);

// kv's description, or why the inputs do not fit. x may have any shape that the layouts stay
// inside. e and f are (P, N) or (H, P, N), and mask is (B, ceil(S/32)) or null.
Result<TensorDesc> check_sequence_projection(const TensorDesc& x, const TensorDesc& e,
                                             const TensorDesc& f, const TensorDesc* mask,
                                             const SequenceProjectionAttrs& attrs);

// Adds the node to the graph and returns kv (elements).
Result<TensorId> add_sequence_projection(Graph& graph, const SequenceProjectionInputs& inputs,
                                         const SequenceProjectionAttrs& attrs);

Status lower_sequence_projection(LowerContext& context, const Node& node);

}  // namespace vkformer
