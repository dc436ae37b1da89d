// Rows of tokens that a family pads inside a pass, to a length that its attention can divide, and
// crops again.
#pragma once

#include "model/model.h"

namespace vkformer {

// Whether token t of row b is one that the mask keeps, in the words of a key mask over `tokens`.
bool is_kept(const std::vector<uint32_t>& mask, int64_t tokens, int64_t row, int64_t token);
// Whether every token of the rows (B, S) is kept.
bool keeps_all(const ForwardInputs& inputs);

// Pads the words of the rows (B, S) to (B, `to`): input_ids with `pad`, key_mask with zeros, types
// with zeros and positions with their index. shape.source stays S.
void pad_tokens(ForwardInputs& inputs, int64_t to, int64_t pad);

// The first `tokens` of `padded` rows: x (B, padded, ...) -> (B, tokens, D). x itself where they
// are as many.
Result<TensorId> add_crop(ModelBuilder& builder, TensorId x, int64_t padded, int64_t tokens);

}  // namespace vkformer
