// A stack whose layers are divided among devices (Shoeybi et al., 2019, "Megatron-LM"). Each has
// some of the heads and of the feed-forward columns of every layer. Its output projections have as
// many inputs fewer, so that what they give is a part of a sum; add_stack adds the parts up.
#pragma once

#include "model/blocks/stack.h"

namespace vkformer {

// The prefix of the names of what a part has. "part.1.decoder.3.self.qkv" is a weight row and the
// label of nodes. Its beginning is their place (load/model_split.h).
std::string part_prefix(int64_t part);

// Whether the layers can be divided into `parts`; an error says what is in the way.
Status check_divisible(const StackConfig& stack, int64_t parts);

// What a part computes: a stack with the part's heads and columns, and rows with its prefix.
// Precondition: check_divisible(stack, stack.parts).
StackConfig part_of_stack(const StackConfig& stack, int64_t part);

// The rows of the stack's layers become those of all parts: slices of projections, copies of norms.
Status divide_rows(const StackConfig& stack, WeightTable& table);

}  // namespace vkformer
