#include "weights/pack_matrix.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace vkformer {

Result<PackedMatrix> pack_matrix(std::span<const float> values, const MatrixShape& shape,
                                 std::span<const float> bias, DType dtype) {
  const auto n = static_cast<size_t>(shape.n);
  const auto k = static_cast<size_t>(shape.k);
  const bool half = dtype == DType::kF16;
  PackedMatrix packed;
  packed.words.assign(packed_elements(shape.n, shape.k) / (half ? 2 : 1), 0u);
  for (size_t row = 0; row < k; ++row) {
    for (size_t column = 0; column < n; ++column) {
      const bool out_in = shape.order == MatrixOrder::kOutIn;
      const float value = values[out_in ? column * k + row : row * n + column];
      const size_t index = packed_index(row, column, k);
      if (!half) {
        std::memcpy(&packed.words[index], &value, 4);
        continue;
      }
      if (std::isfinite(value) && std::fabs(value) >= 65520.0f) {
        return unsupported("[weights] hold " + std::to_string(value) +
                           ", beyond the 65504 of f16; use f32 weights");
      }
      packed.words[index / 2] |= uint32_t{half_from_float(value)} << (index % 2 * 16);
    }
  }
  if (!bias.empty()) {
    packed.bias_offset = static_cast<uint32_t>(packed.words.size());
    packed.words.resize(packed.words.size() + n);
    std::memcpy(&packed.words[packed.bias_offset], bias.data(), n * 4);
  }
  return packed;
}

}  // namespace vkformer
