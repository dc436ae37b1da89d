// TokenId: the one type of a token's number, in tokenizers, sessions, grammars and tasks.
//
// Threading and lifetime: a plain number.
#pragma once

#include <cstdint>

namespace vkformer {

// A token of a vocabulary of V tokens: 0 to V - 1, and V is at most 2^31 - 1. It is a signed 64-bit
// number because the input_ids of Hugging Face's tensors are (I64). A vector of ids is the data of
// such a tensor as it is, and Tensor::to_ints gives ids back. Calls that take an id outside of the
// range return an error; where a field says so, -1 means "no token".
using TokenId = std::int64_t;

}  // namespace vkformer
