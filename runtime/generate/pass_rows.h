// Token rows as inputs of full passes, for what is computed by passes instead of steps.
#pragma once

#include <functional>

#include "generate/generation_sizes.h"

namespace vkformer {

// A full pass of the session that generates: inputs by name to outputs by name.
using RunPass = std::function<Result<TensorMap>(const TensorMap& inputs)>;

// The length that a row of `tokens` tokens is padded to, so that near lengths share a recording.
// Families whose arithmetic depends on the length are not padded.
int64_t padded_length(const ModelFacts& facts, int64_t tokens);
// An error where the logits of `tokens` tokens in all are more than a pass returns.
Status check_logits(const ModelFacts& facts, int64_t tokens, const char* what);
// Rows of one length, padded on the right, as input_ids and attention_mask (B,T). For a model with
// an encoder they are the decoder's, and `source` holds the encoder's inputs.
TensorMap pass_inputs(const ModelFacts& facts, TensorMap source,
                      const std::vector<std::vector<int64_t>>& rows, int64_t length);
// Row `index` of every input.
TensorMap input_row(const TensorMap& inputs, int64_t index);

}  // namespace vkformer
