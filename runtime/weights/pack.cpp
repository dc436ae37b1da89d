#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "weights/pack_matrix.h"
#include "weights/weight_table.h"

namespace vkformer {
namespace {

float element(const TensorView& view, size_t index) {
  const std::byte* at = view.bytes.data() + index * dtype_size(view.dtype);
  if (view.dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (view.dtype == DType::kF64) {
    double value = 0;
    std::memcpy(&value, at, 8);
    return static_cast<float>(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  return view.dtype == DType::kF16 ? float_from_half(bits) : float_from_bfloat(bits);
}

void store_float(std::span<std::byte> out, size_t word, float value) {
  std::memcpy(out.data() + word * 4, &value, 4);
}

// Half of a value that must fit: a finite weight that would become infinite is an error.
Status store_half(std::span<std::byte> out, size_t index, float value, const std::string& name) {
  const uint16_t bits = half_from_float(value);
  if ((bits & 0x7fff) == 0x7c00 && value - value == 0.0f) {
    return unsupported("[" + name + "] holds " + std::to_string(value) +
                       ", beyond the 65504 of f16; load the model with f32 weights");
  }
  std::memcpy(out.data() + index * 2, &bits, 2);
  return {};
}

// Transposes rows [first, first + count) of the (N, K) source into columns [column, ...) of out.
Status pack_columns(const PackedWeight& weight, const TensorView& source, int64_t first,
                    int64_t count, int64_t column, std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  for (int64_t n = 0; n < count; ++n) {
    for (size_t k = 0; k < width; ++k) {
      const float value = element(source, static_cast<size_t>(first + n) * width + k);
      const size_t index = packed_index(k, static_cast<size_t>(column + n), width);
      if (weight.dtype == DType::kF16) {
        VKF_CHECK(store_half(out, index, value, weight.row.name));
      } else {
        store_float(out, index, value);
      }
    }
  }
  return {};
}

Status pack_linear(const PackedWeight& weight, const Checkpoint& checkpoint,
                   std::span<std::byte> out) {
  const WeightRow& row = weight.row;
  const int64_t first = row.first_row < 0 ? 0 : row.first_row;
  int64_t column = 0;
  for (const std::string& source : row.sources) {
    const TensorView& view = *checkpoint.find(source);
    const int64_t count = row.first_row < 0 ? view.shape[0] : row.rows;
    VKF_CHECK(pack_columns(weight, view, first, count, column, out));
    column += count;
  }
  size_t word = weight.bias_offset;
  for (const std::string& bias : row.biases) {
    const TensorView& view = *checkpoint.find(bias);
    const auto count =
        static_cast<size_t>(row.first_row < 0 ? element_count(view.shape) : row.rows);
    for (size_t i = 0; i < count; ++i) {
      store_float(out, word++, element(view, static_cast<size_t>(first) + i));
    }
  }
  return {};
}

void pack_norm(const PackedWeight& weight, const Checkpoint& checkpoint, std::span<std::byte> out) {
  const auto width = static_cast<size_t>(weight.row.width);
  const TensorView& gain = *checkpoint.find(weight.row.sources[0]);
  const TensorView* bias =
      weight.row.biases.empty() ? nullptr : checkpoint.find(weight.row.biases[0]);
  for (size_t i = 0; i < width; ++i) {
    store_float(out, i, element(gain, i));
    store_float(out, width + i, bias == nullptr ? 0.0f : element(*bias, i));
  }
}

}  // namespace

Status pack_weight(const PackedWeight& weight, const Checkpoint& checkpoint,
                   std::span<std::byte> out) {
  if (out.size() != weight.bytes) return internal_error("[pack] wrong size of the output");
  std::memset(out.data(), 0, out.size());
  if (weight.row.layout == WeightLayout::kLinear) return pack_linear(weight, checkpoint, out);
  if (weight.row.layout == WeightLayout::kNorm) {
    pack_norm(weight, checkpoint, out);
    return {};
  }
  if (!weight.row.computed.empty()) {
    std::memcpy(out.data(), weight.row.computed.data(), out.size());
    return {};
  }
  const TensorView& view = *checkpoint.find(weight.row.sources[0]);
  for (size_t i = 0; i < weight.bytes / 4; ++i) store_float(out, i, element(view, i));
  return {};
}

}  // namespace vkformer
