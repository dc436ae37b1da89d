// GPT-2 (Radford et al., 2019): learned positions, norms before each sublayer, tied head.
#pragma once

#include "model/blocks/stack.h"

namespace vkformer {

// The stack that a configuration (of a model, or nested in one) describes, its rows under
// "decoder".
Status read_gpt2_stack(const JsonConfig& config, StackConfig& stack);
// Its weight rows and those of its table of positions, "positions", from tensors whose names begin
// with `prefix` ("transformer."), and what to ignore. A stack with cross-attention has its rows
// too.
void add_gpt2_rows(WeightTable& table, const StackConfig& stack, int64_t positions,
                   const std::string& prefix);

}  // namespace vkformer
