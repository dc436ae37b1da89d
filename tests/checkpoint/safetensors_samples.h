// Safetensors files as text, good and bad, for the tests of the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace vkformer::test {

inline constexpr DType kEveryDType[] = {
    DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16,
    DType::kI8,  DType::kU64, DType::kU32, DType::kU16,  DType::kU8,  DType::kBool};

// A file with this header, unpadded, and `data_size` bytes of data.
inline std::string file_text(std::string_view header, size_t data_size) {
  const uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  text += header;
  for (size_t i = 0; i < data_size; ++i) text += static_cast<char>(i * 7 + 1);
  return text;
}

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Result<SafetensorsFile> open_text(std::string_view text) {
  return SafetensorsFile::from_bytes(to_bytes(text), "sample.safetensors");
}

// A tensor with bytes that differ from element to element.
inline Tensor patterned(DType dtype, Shape shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i) {
    tensor.bytes[i] = static_cast<std::byte>(i * 13 + dtype_size(dtype));
  }
  return tensor;
}

}  // namespace vkformer::test
