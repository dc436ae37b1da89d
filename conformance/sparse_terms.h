// The sparse terms of checks over scores: global tokens, packed documents, a prefix, a map of
// blocks.
#pragma once

#include <cstdint>

#include "conformance/content.h"
#include "reference/mask.h"

namespace vkformer::conformance {

enum SparseKind : uint32_t {
  kSparseGlobal = 1,
  kSparseDocuments = 2,
  kSparsePrefix = 4,
  kSparseBlocks = 8,  // of kSparseBlock tokens; the attribute block_size says so
};
inline constexpr int64_t kSparseBlock = 8;

// What the reference looks into.
struct SparseArrays {
  Array global, documents, prefix, block_map;
};

// Gives a call over scores (B, H, T, S) these kinds. T and S are equal, and with blocks multiples
// of kSparseBlock.
void add_sparse_terms(uint32_t kinds, const Shape& scores, SparseArrays& arrays,
                      reference::MaskOptions& masks, TensorMap& inputs);

}  // namespace vkformer::conformance
