#include "vkformer/tensor.h"

#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/guarded.h"
#include "base/half.h"
#include "base/message.h"
#include "checkpoint/safetensors.h"

namespace vkformer {

namespace {

constexpr const char* kTensorsTooLarge =
    "The [tensors] do not fit into memory; close other programs or read fewer tensors at a time.";

}  // namespace

static_assert(std::endian::native == std::endian::little,
              "tensors are little-endian; a big-endian host would need byte swaps here");

size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kU64:
      return "U64";
    case DType::kU32:
      return "U32";
    case DType::kU16:
      return "U16";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  return "unknown";
}

int64_t element_count(const Shape& shape) {
  // A broken precondition gives -1, which agrees with no number of bytes, rather than an overflow.
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent != 0 && count > std::numeric_limits<int64_t>::max() / extent) return -1;
    count *= extent;
  }
  return count;
}

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + ")";
}

namespace {

// More than any address space holds, and few enough that their size in bytes cannot overflow.
constexpr uint64_t kMostElements =
    sizeof(size_t) >= 8 ? uint64_t{1} << 47 : std::numeric_limits<size_t>::max() / 16;

template <class T>
std::vector<std::byte> copy_bytes(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// An error unless the bytes are as many as shape and dtype ask for. A Tensor's fields are open to
// the application, so this is not given.
Status check_size(const Tensor& tensor) {
  const int64_t count = tensor.count();
  const size_t size = dtype_size(tensor.dtype);
  if (count >= 0 && size != 0 && tensor.bytes.size() % size == 0 &&
      tensor.bytes.size() / size == static_cast<uint64_t>(count)) {
    return {};
  }
  return invalid_argument(message({"A tensor of dtype [", dtype_name(tensor.dtype), "] and shape [",
                                   shape_text(tensor.shape), "] holds ", tensor.bytes.size(),
                                   " bytes, which do not fit; give one value for each element."}));
}

template <class Stored, class Wide, class Convert>
std::vector<Wide> widen(const Tensor& tensor, Convert convert) {
  std::vector<Wide> values(tensor.bytes.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = convert(load<Stored>(tensor.bytes.data() + i * sizeof(Stored)));
  }
  return values;
}

template <class Stored>
std::vector<int64_t> widen_ints(const Tensor& tensor) {
  return widen<Stored, int64_t>(tensor, [](Stored v) { return static_cast<int64_t>(v); });
}

Result<std::vector<int64_t>> ints_from_u64(const Tensor& tensor) {
  const std::vector<int64_t> values = widen_ints<uint64_t>(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0) continue;
    return invalid_argument(
        message({"Element ", i, " of a [U64] tensor is ", static_cast<uint64_t>(values[i]),
                 ", above the largest 64-bit signed integer; read its bytes instead."}));
  }
  return values;
}

}  // namespace

Tensor Tensor::from_floats(Shape shape, std::span<const float> values) {
  return {DType::kF32, std::move(shape), copy_bytes(values)};
}

Tensor Tensor::from_floats(Shape shape, std::initializer_list<float> values) {
  return from_floats(std::move(shape), std::span(values));
}

Tensor Tensor::from_ints(Shape shape, std::span<const int64_t> values) {
  return {DType::kI64, std::move(shape), copy_bytes(values)};
}

Tensor Tensor::from_ints(Shape shape, std::initializer_list<int64_t> values) {
  return from_ints(std::move(shape), std::span(values));
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor{dtype, std::move(shape), {}};
  const int64_t count = tensor.count();
  if (count <= 0) return tensor;
  if (static_cast<uint64_t>(count) > kMostElements) return tensor;
  try {
    tensor.bytes.resize(static_cast<size_t>(count) * dtype_size(dtype));
  } catch (const std::exception&) {
    // Without memory the tensor stays without bytes, which every use of it checks and reports.
    tensor.bytes.clear();
  }
  return tensor;
}

Result<std::vector<float>> Tensor::to_floats() const {
  return guarded([&]() -> Result<std::vector<float>> {
    VKF_CHECK(check_size(*this));
    switch (dtype) {
      case DType::kF64:
        return widen<double, float>(*this, [](double v) { return static_cast<float>(v); });
      case DType::kF32:
        return widen<float, float>(*this, [](float v) { return v; });
      case DType::kF16:
        return widen<uint16_t, float>(*this, float_from_half);
      case DType::kBF16:
        return widen<uint16_t, float>(*this, float_from_bfloat);
      default:
        return invalid_argument(message({"A tensor of dtype [", dtype_name(dtype),
                                         "] holds no floats; call to_ints instead."}));
    }
  });
}

Result<std::vector<int64_t>> Tensor::to_ints() const {
  return guarded([&]() -> Result<std::vector<int64_t>> {
    VKF_CHECK(check_size(*this));
    switch (dtype) {
      case DType::kI64:
        return widen_ints<int64_t>(*this);
      case DType::kI32:
        return widen_ints<int32_t>(*this);
      case DType::kI16:
        return widen_ints<int16_t>(*this);
      case DType::kI8:
        return widen_ints<int8_t>(*this);
      case DType::kU64:
        return ints_from_u64(*this);
      case DType::kU32:
        return widen_ints<uint32_t>(*this);
      case DType::kU16:
        return widen_ints<uint16_t>(*this);
      case DType::kU8:
        return widen_ints<uint8_t>(*this);
      case DType::kBool:
        return widen<uint8_t, int64_t>(*this, [](uint8_t v) -> int64_t { return v != 0; });
      default:
        return invalid_argument(message({"A tensor of dtype [", dtype_name(dtype),
                                         "] holds no integers; call to_floats instead."}));
    }
  });
}

Result<TensorMap> read_tensor_file(const std::string& path) {
  return guarded(kTensorsTooLarge, [&]() -> Result<TensorMap> {
    VKF_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path));
    TensorMap tensors;
    for (const auto& [name, view] : file.tensors()) {
      tensors.emplace(name, Tensor{view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}});
    }
    return tensors;
  });
}

Status write_tensor_file(const std::string& path, const TensorMap& tensors) {
  return guarded([&] { return write_safetensors(path, tensors); });
}

}  // namespace vkformer
