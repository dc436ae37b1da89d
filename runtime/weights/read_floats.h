// Elements of a checkpoint's tensors as f32. They are for the packers, and for families that
// compute a table at load out of small tensors (batch norms, relative position biases, score
// scales).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "checkpoint/checkpoint.h"

namespace vkformer {

// Element `index` of a quantized tensor or one of type F32, F16, BF16 or F64, as f32. Precondition:
// it is of such a type and has that many elements. Inline, because packers call it for every
// weight.
inline float element_as_float(const TensorView& view, size_t index) {
  if (view.blocks != nullptr) return quantized_element(view, index);
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

// out.size() elements, `stride` apart, from element `first` on. Blocks of a GGUF file are decoded
// once each where the elements are neighbors.
void read_elements(const TensorView& view, size_t first, size_t stride, std::span<float> out);

// Is the tensor one that element_as_float reads?
bool holds_floats(const TensorView& view);

// All elements of the tensor `name`, which must have exactly the shape `expected` and be F32, F16,
// BF16 or F64; row-major. An error names the tensor, its file and what was expected.
Result<std::vector<float>> read_floats(const Checkpoint& checkpoint, const std::string& name,
                                       const Shape& expected);

}  // namespace vkformer
