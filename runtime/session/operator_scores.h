// Masks and biases of an OperatorCall over scores: what softmax and the attention operators share.
#pragma once

#include <array>

#include "ops/score_terms.h"
#include "session/operator_arguments.h"

namespace vkformer {

// Packs the inputs key_mask (B, S), mask and bias (broadcast to (B, H, T, S)), global (B, T = S)
// and alibi_slopes (H), and sets the causal and window fields from the attributes causal,
// causal_offset, window_left and window_right. `dims` is B, H, T, S. Pairs with a global token are
// allowed whatever causal and windows say; they are folded into the mask here, on the host.
Result<ScoreTerms> pack_call_terms(const OperatorArguments& arguments,
                                   const std::array<int64_t, 4>& dims);

// The shape with ones in front until it has `rank` dimensions; unchanged if it has as many.
Shape padded_shape(Shape shape, size_t rank);

}  // namespace vkformer
