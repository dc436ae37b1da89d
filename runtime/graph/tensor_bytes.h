// The bytes that a tensor takes.
#pragma once

#include <algorithm>

#include "graph/graph.h"

namespace vkformer {

// Whole words, at least one, since shaders read words.
inline uint64_t tensor_bytes(const TensorDesc& tensor) {
  if (tensor.bytes != 0) return tensor.bytes;
  const uint64_t raw =
      static_cast<uint64_t>(element_count(tensor.shape)) * dtype_size(tensor.dtype);
  return std::max<uint64_t>(4, (raw + 3) / 4 * 4);
}

}  // namespace vkformer
