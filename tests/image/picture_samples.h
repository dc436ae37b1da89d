// Golden pictures (tools/golden/picture_golden.py) and small files made by hand.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "image/picture.h"
#include "vkformer/tensor.h"

namespace vkformer::test {

inline TensorMap golden_pictures() {
  auto tensors = read_tensor_file(std::string(VKFORMER_SOURCE_DIR) +
                                  "/tests/image/golden/pictures.safetensors");
  REQUIRE(tensors.ok());
  return std::move(*tensors);
}

// The picture that a U8 tensor (height, width, 3) holds.
inline RgbPicture to_picture(const Tensor& tensor) {
  REQUIRE(tensor.dtype == DType::kU8);
  REQUIRE(tensor.shape.size() == 3);
  RgbPicture picture;
  picture.height = static_cast<int>(tensor.shape[0]);
  picture.width = static_cast<int>(tensor.shape[1]);
  picture.pixels.resize(tensor.bytes.size());
  std::memcpy(picture.pixels.data(), tensor.bytes.data(), tensor.bytes.size());
  return picture;
}

inline std::vector<std::byte> file_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A GIF of 4 colors whose only frame is the given bytes of codes: (left, top, width, height), bits
// of the first code, one block.
inline std::string gif_file(const std::string& screen, const std::string& frame,
                            const std::string& flags, const std::string& codes) {
  std::string file = "GIF89a" + screen + std::string("\x81\0\0", 3);
  file += std::string("\x0a\x14\x1e\xc8\x00\x00\x00\xc8\x00\x00\x00\xc8", 12);
  return file + "," + frame + flags + '\x02' + static_cast<char>(codes.size()) + codes +
         std::string("\0;", 2);
}

}  // namespace vkformer::test
