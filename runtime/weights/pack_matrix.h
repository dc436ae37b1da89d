// One matrix in the packed layout of the matrix kernels, from plain floats. It is what models get
// from pack_weight, for operators, benchmarks and blocks that have no checkpoint.
#pragma once

#include <span>
#include <vector>

#include "base/check.h"
#include "base/matrix_format.h"
#include "params/matmul.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The layout is panels of kPanelColumns columns (params/matmul.h), each (K, kPanelColumns)
// row-major.

// Elements of a packed (K, N) matrix in f32 or f16, the last panel padded.
inline uint64_t packed_elements(int64_t n, int64_t k) {
  return (static_cast<uint64_t>(n) + kPanelColumns - 1) / kPanelColumns * kPanelColumns *
         static_cast<uint64_t>(k);
}

// Where element (row, column) of a (K, N) matrix with `k` rows lies.
inline size_t packed_index(size_t row, size_t column, size_t k) {
  return column / kPanelColumns * kPanelColumns * k + row * kPanelColumns + column % kPanelColumns;
}

enum class MatrixOrder : uint8_t { kOutIn, kInOut };  // (N, K), or (K, N)

struct MatrixShape {
  int64_t n = 0;
  int64_t k = 0;
  MatrixOrder order = MatrixOrder::kOutIn;
};

struct PackedMatrix {
  std::vector<uint32_t> words;  // the panels, then N bias values in f32
  uint32_t bias_offset = ~0u;   // words; ~0 = no bias
};

// `values` has N * K elements, `bias` N or none. A finite value beyond f16's range, or one that a
// quantized format cannot hold, is an error.
Result<PackedMatrix> pack_matrix(std::span<const float> values, const MatrixShape& shape,
                                 std::span<const float> bias, MatrixFormat format);

}  // namespace vkformer
