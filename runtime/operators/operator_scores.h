// Masks and biases of an OperatorCall over scores: what softmax and the attention operators share.
#pragma once

#include <array>

#include "operators/operator_arguments.h"
#include "ops/score_terms.h"

namespace vkformer {

// Packs the inputs key_mask (B, S), mask and bias (broadcast to (B, H, T, S)), and global (B, T =
// S). Packs alibi_slopes (H), sink_scores (H), documents (B, T = S), prefix (B) and block_map (B|1,
// H|1, T / block, S / block), too. Sets the causal and window fields from the attributes causal,
// causal_offset, window_left and window_right. prefix may be an attribute, too. `dims` is B, H, T,
// S.
Result<ScoreTerms> pack_call_terms(const OperatorArguments& arguments,
                                   const std::array<int64_t, 4>& dims);

// The bits of the mask `name` (batch, tokens), pack_key_mask's words; an error for another shape.
Result<std::vector<uint32_t>> packed_mask(const OperatorArguments& arguments,
                                          const std::string& name, const Shape& shape);

// Keys that a query visits with these terms, for AttentionAttrs::visited; 0: not less than windows
// say.
uint32_t visited_keys(const ScoreTerms& terms);

// The shape with ones in front until it has `rank` dimensions; unchanged if it has as many.
Shape padded_shape(Shape shape, size_t rank);

}  // namespace vkformer
