#include "reference/array.h"

#include <cstring>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/half.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

// The product of the dimensions, or -1 when one is negative or the product overflows.
int64_t safe_count(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0) return -1;
    if (dim > 0 && count > std::numeric_limits<int64_t>::max() / dim) return -1;
    count *= dim;
  }
  return count;
}

std::string label(std::string_view op, std::string_view role) {
  return "[" + std::string(op) + "] " + std::string(role);
}

template <class T>
void widen(const Tensor& tensor, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

void widen_16_bit_float(const Tensor& tensor, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof(bits), sizeof(bits));
    out[i] = tensor.dtype == DType::kF16 ? float_from_half(bits) : float_from_bfloat(bits);
  }
}

}  // namespace

Array filled(Shape shape, double value) {
  Array array;
  array.data.assign(static_cast<size_t>(element_count(shape)), value);
  array.shape = std::move(shape);
  return array;
}

Result<Array> from_tensor(const Tensor& tensor) {
  const int64_t count = safe_count(tensor.shape);
  const size_t width = dtype_size(tensor.dtype);
  if (count < 0 || tensor.bytes.size() / width != static_cast<size_t>(count) ||
      tensor.bytes.size() % width != 0) {
    return invalid_argument(
        message({"[from_tensor] The tensor has ", tensor.bytes.size(),
                 " bytes, which does not fit its shape and dtype ", dtype_name(tensor.dtype),
                 "; make both describe the same elements."}));
  }
  Array array{tensor.shape, std::vector<double>(static_cast<size_t>(count))};
  switch (tensor.dtype) {
    case DType::kF64:
      widen<double>(tensor, array.data);
      break;
    case DType::kF32:
      widen<float>(tensor, array.data);
      break;
    case DType::kF16:
    case DType::kBF16:
      widen_16_bit_float(tensor, array.data);
      break;
    case DType::kI64:
      widen<int64_t>(tensor, array.data);
      break;
    case DType::kI32:
      widen<int32_t>(tensor, array.data);
      break;
    case DType::kI16:
      widen<int16_t>(tensor, array.data);
      break;
    case DType::kI8:
      widen<int8_t>(tensor, array.data);
      break;
    case DType::kU64:
      widen<uint64_t>(tensor, array.data);
      break;
    case DType::kU32:
      widen<uint32_t>(tensor, array.data);
      break;
    case DType::kU16:
      widen<uint16_t>(tensor, array.data);
      break;
    case DType::kU8:
    case DType::kBool:
      widen<uint8_t>(tensor, array.data);
      break;
  }
  return array;
}

Tensor to_tensor(const Array& array) {
  std::vector<float> values(array.data.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(array.data[i]);
  return Tensor::from_floats(array.shape, values);
}

Array round_to_f32(Array array) {
  for (double& value : array.data) value = static_cast<float>(value);
  return array;
}

Array round_to_f16(Array array) {
  for (double& value : array.data) {
    value = float_from_half(half_from_float(static_cast<float>(value)));
  }
  return array;
}

Array round_to_bf16(Array array) {
  for (double& value : array.data) {
    value = float_from_bfloat(bfloat_from_float(static_cast<float>(value)));
  }
  return array;
}

Status check_array(const Array& array, std::string_view op, std::string_view role) {
  const int64_t count = safe_count(array.shape);
  if (count == array.size()) return {};
  return invalid_argument(
      message({label(op, role), " holds ", array.size(), " elements, but its shape asks for ",
               (count < 0 ? "an impossible number" : std::to_string(count)),
               "; give as many elements as the shape has."}));
}

Status check_shape(const Array& array, const Shape& shape, std::string_view op,
                   std::string_view role) {
  VKF_CHECK(check_array(array, op, role));
  if (array.shape == shape) return {};
  return invalid_argument(message({label(op, role), " has shape ", shape_text(array.shape),
                                   "; it must have shape ", shape_text(shape), "."}));
}

Result<Array> broadcast_to(const Array& array, const Shape& shape, std::string_view op,
                           std::string_view role) {
  VKF_CHECK(check_array(array, op, role));
  const size_t rank = shape.size();
  bool fits = array.shape.size() <= rank && safe_count(shape) >= 0;
  // strides[axis] is 0 where the array repeats.
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t back = 1; fits && back <= array.shape.size(); ++back) {
    const int64_t dim = array.shape[array.shape.size() - back];
    fits = dim == 1 || dim == shape[rank - back];
    if (dim != 1) strides[rank - back] = stride;
    stride *= dim;
  }
  if (!fits) {
    return invalid_argument(message({label(op, role), " has shape ", shape_text(array.shape),
                                     ", which does not broadcast to ", shape_text(shape),
                                     "; every axis must be equal, 1 or absent."}));
  }
  Array out = filled(shape, 0.0);
  for (int64_t flat = 0; flat < out.size(); ++flat) {
    int64_t rest = flat;
    int64_t source = 0;
    for (size_t axis = rank; axis-- > 0;) {
      source += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    out[flat] = array[source];
  }
  return out;
}

}  // namespace vkformer::reference
