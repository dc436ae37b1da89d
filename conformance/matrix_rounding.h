// Matrices rounded to what a storage format holds, for the double references of products.
#pragma once

#include <algorithm>
#include <vector>

#include "reference/array.h"
#include "weights/pack_matrix.h"
#include "weights/quantize.h"

namespace vkformer::conformance {

// The weights that a packed matrix stands for. Its K is the axis before the last for kInOut
// (..., K, N), the last one for kOutIn (..., N, K).
inline reference::Array round_to_format(reference::Array w, MatrixFormat format,
                                        MatrixOrder order = MatrixOrder::kInOut) {
  if (format == MatrixFormat::kF32) return w;
  if (format == MatrixFormat::kF16) return reference::round_to_f16(w);
  const bool in_out = order == MatrixOrder::kInOut;
  const int64_t k = w.dim(in_out ? -2 : -1);
  const int64_t n = w.dim(in_out ? -1 : -2);
  const auto together = static_cast<int64_t>(quantized_together(format));
  std::array<WeightBlock, kBlocksOfSuper> blocks;
  for (int64_t matrix = 0; matrix < w.size(); matrix += k * n) {
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t first = 0; first < k; first += together) {
        const int64_t count = std::min<int64_t>(together, k - first);
        const auto at = [&](int64_t i) -> double& {
          return w[matrix + (in_out ? (first + i) * n + column : column * k + first + i)];
        };
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(at(i)));
        quantize_blocks(values, format,
                        {blocks.data(), (values.size() + kBlockSteps - 1) / kBlockSteps});
        for (size_t i = 0; i < values.size(); ++i) {
          at(static_cast<int64_t>(i)) =
              block_weight(blocks[i / kBlockSteps], i % kBlockSteps, format);
        }
      }
    }
  }
  return w;
}

}  // namespace vkformer::conformance
