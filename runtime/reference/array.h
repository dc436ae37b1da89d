// Array: a dense row-major array of doubles, the currency of the references.
// Needs: Tensor (to come from and go to), Result.
//
// A scalar has the empty shape. Integers (ids, masks, indices) are stored as doubles, which is
// exact up to 2^53.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer::reference {

struct Array {
  Shape shape;
  std::vector<double> data;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(data.size()); }
  // The size of an axis; -1 is the last one. Precondition: the axis exists.
  int64_t dim(int64_t axis) const { return shape[static_cast<size_t>(axis_at(axis))]; }
  // Element by flat row-major position. Precondition: 0 <= index < size().
  double& operator[](int64_t index) { return data[static_cast<size_t>(index)]; }
  double operator[](int64_t index) const { return data[static_cast<size_t>(index)]; }

 private:
  int64_t axis_at(int64_t axis) const { return axis < 0 ? rank() + axis : axis; }
};

// An array with every element equal to `value`. Precondition: no negative dimension.
Array filled(Shape shape, double value);

// The elements of a tensor of any dtype, widened exactly (64-bit integers: to 53 bits). An error if
// the tensor's bytes do not match its shape.
Result<Array> from_tensor(const Tensor& tensor);
// The elements rounded to F32.
Tensor to_tensor(const Array& array);

// Every element rounded to the nearest value of a storage type, ties to even. What a GPU test does
// to its inputs before both sides compute. The 16-bit forms round by way of f32.
Array round_to_f32(Array array);
Array round_to_f16(Array array);
Array round_to_bf16(Array array);

// Is data.size() the product of the shape? `op` and `role` name the array in the message.
Status check_array(const Array& array, std::string_view op, std::string_view role);
// check_array, and the shape is exactly `shape`.
Status check_shape(const Array& array, const Shape& shape, std::string_view op,
                   std::string_view role);

// The array repeated to `shape` by numpy's rule: axes are matched from the last; a missing axis or
// one of size 1 repeats.
Result<Array> broadcast_to(const Array& array, const Shape& shape, std::string_view op,
                           std::string_view role);

}  // namespace vkformer::reference
