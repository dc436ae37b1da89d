// One matrix in the packed layout of the matrix kernels, from plain floats: what models get from
// pack_weight, for operators, benchmarks and blocks that have no checkpoint.
#pragma once

#include <span>
#include <vector>

#include "base/check.h"
#include "vkformer/tensor.h"

namespace vkformer {

// Columns per load of the matrix kernels: two vec4, or one word vector of eight halves. Rows of a
// packed matrix are padded to it.
inline constexpr uint32_t kLinearPadding = 8;

enum class MatrixOrder : uint8_t { kOutIn, kInOut };  // (N, K), or (K, N)

struct MatrixShape {
  int64_t n = 0;
  int64_t k = 0;
  MatrixOrder order = MatrixOrder::kOutIn;
};

struct PackedMatrix {
  std::vector<uint32_t> words;  // (K, row_stride) elements, then N bias values in f32
  uint32_t row_stride = 0;      // elements
  uint32_t bias_offset = ~0u;   // words; ~0 = no bias
};

// `values` has N * K elements, `bias` N or none; dtype is F32 or F16. A finite value beyond f16's
// range is an error.
Result<PackedMatrix> pack_matrix(std::span<const float> values, const MatrixShape& shape,
                                 std::span<const float> bias, DType dtype);

}  // namespace vkformer
