// Tensor: a dense array in host memory, the currency between an application and vkformer.
//
// Threading: plain values, no shared state.
// Lifetime: a Tensor owns its bytes. Layout is row-major, slowest dimension first, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/result.h"

namespace vkformer {

// Element types, named as in safetensors files.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};

using Shape = std::vector<int64_t>;

// Bytes of one element.
VKFORMER_API size_t dtype_size(DType dtype);
// "F32", "I64", ... as safetensors spells them.
VKFORMER_API const char* dtype_name(DType dtype);
// Product of the dimensions; 1 for a scalar's empty shape. Precondition: no negative dimension, no
// overflow.
VKFORMER_API int64_t element_count(const Shape& shape);
// "(2, 7, 32)".
VKFORMER_API std::string shape_text(const Shape& shape);

// A dense array: dtype, shape and row-major bytes.
struct VKFORMER_API Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  static Tensor from_floats(Shape shape, std::span<const float> values);
  static Tensor from_floats(Shape shape, std::initializer_list<float> values);
  static Tensor from_ints(Shape shape, std::span<const int64_t> values);
  static Tensor from_ints(Shape shape, std::initializer_list<int64_t> values);
  static Tensor zeros(DType dtype, Shape shape);

  int64_t count() const { return element_count(shape); }
  // The elements widened to f32 (exact for F32, F16, BF16), or an error for other types than float
  // ones.
  Result<std::vector<float>> to_floats() const;
  // The elements as 64-bit integers, or an error for float types.
  Result<std::vector<int64_t>> to_ints() const;
};

// Named tensors, in name order.
using TensorMap = std::map<std::string, Tensor>;

// Reads every tensor of a safetensors file into memory.
VKFORMER_API Result<TensorMap> read_tensor_file(const std::string& path);
// Writes a safetensors file; an existing one is replaced whole or not at all.
VKFORMER_API Status write_tensor_file(const std::string& path, const TensorMap& tensors);

}  // namespace vkformer
