#include "weights/pack_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/message.h"
#include "weights/quantize.h"

namespace vkformer {

namespace {

struct MatrixView {
  std::span<const float> values;
  MatrixShape shape;

  float at(size_t row, size_t column) const {
    return values[shape.order == MatrixOrder::kOutIn ? column * static_cast<size_t>(shape.k) + row
                                                     : row * static_cast<size_t>(shape.n) + column];
  }
};

Status pack_words(const MatrixView& matrix, MatrixFormat format, std::span<uint32_t> words) {
  const auto n = static_cast<size_t>(matrix.shape.n);
  const auto k = static_cast<size_t>(matrix.shape.k);
  for (size_t row = 0; row < k; ++row) {
    for (size_t column = 0; column < n; ++column) {
      const float value = matrix.at(row, column);
      const size_t index = packed_index(row, column, k);
      if (format == MatrixFormat::kF32) {
        std::memcpy(&words[index], &value, 4);
        continue;
      }
      if (std::isfinite(value) && std::fabs(value) >= 65520.0f) {
        return unsupported(
            message({"[weights] hold ", value, ", beyond the 65504 of f16; use f32 weights"}));
      }
      words[index / 2] |= uint32_t{half_from_float(value)} << (index % 2 * 16);
    }
  }
  return {};
}

Status pack_in_blocks(const MatrixView& matrix, MatrixFormat format, std::span<uint32_t> words) {
  const auto k = static_cast<size_t>(matrix.shape.k);
  const size_t together = quantized_together(format);
  std::array<float, kBlockSteps * kBlocksOfSuper> values{};
  for (size_t column = 0; column < static_cast<size_t>(matrix.shape.n); ++column) {
    for (size_t first = 0; first < k; first += together) {
      const std::span<float> some(values.data(), std::min(together, k - first));
      for (size_t i = 0; i < some.size(); ++i) some[i] = matrix.at(first + i, column);
      if (!fits_blocks(some, format)) {
        return unsupported(
            message({"[weights] hold a value that is not a number below ", block_limit(format),
                     ", which ", format_name(format), " cannot store; use f32 weights"}));
      }
      store_quantized(std::as_writable_bytes(words), {column, first / kBlockSteps, k}, some,
                      format);
    }
  }
  return {};
}

}  // namespace

Result<PackedMatrix> pack_matrix(std::span<const float> values, const MatrixShape& shape,
                                 std::span<const float> bias, MatrixFormat format) {
  PackedMatrix packed;
  packed.words.assign(matrix_words(format, shape.n, shape.k), 0u);
  const MatrixView matrix{values, shape};
  VKF_CHECK(in_blocks(format) ? pack_in_blocks(matrix, format, packed.words)
                              : pack_words(matrix, format, packed.words));
  if (!bias.empty()) {
    packed.bias_offset = static_cast<uint32_t>(packed.words.size());
    packed.words.resize(packed.words.size() + bias.size());
    std::memcpy(&packed.words[packed.bias_offset], bias.data(), bias.size_bytes());
  }
  return packed;
}

}  // namespace vkformer
