// The hash of a call's tokens: what lsh_hash computes, and lsh_attention sorts by.
#pragma once

#include "operators/operator_arguments.h"
#include "ops/lsh_hash.h"

namespace vkformer {

// `name` is the input whose shape (B, H, S, E) is `tokens`; `rotations` is (H, E, hashes, half the
// buckets).
Result<LshHashAttrs> lsh_hash_attrs(const OperatorArguments& arguments, const char* name,
                                    const Shape& tokens, const Shape& rotations);

}  // namespace vkformer
