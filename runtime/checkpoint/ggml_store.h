// The bytes of blocks of weights in the types of GGUF files: what ggml_types.h reads, written.
//
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "checkpoint/ggml_types.h"

namespace vkformer {

// One block of a type in blocks, of its 32 or 256 weights. `blocks` are of ggml_format(type), each
// in whole numbers that the type has bits for; `out` has the bytes of one block.
void store_ggml_block(GgmlType type, std::span<const WeightBlock> blocks, std::span<std::byte> out);

}  // namespace vkformer
