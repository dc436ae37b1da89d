// Pictures as RGB bytes: decoding of files, and raw frames. Every size is checked before a pixel is
// decoded.
// Needs: vkformer/picture.h for the frames that callers hand in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkformer/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// Pixels a side and in all that a picture may have, and bytes of a picture file.
inline constexpr int kMaxPictureSide = 16384;
inline constexpr int64_t kMaxPicturePixels = int64_t{1} << 26;
inline constexpr size_t kMaxPictureFile = size_t{512} << 20;

// 8-bit red, green and blue, row by row from the top.
struct RgbPicture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;  // (height, width, 3)

  // Precondition: 0 <= y < height.
  const uint8_t* row(int y) const {
    return pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(width) * 3;
  }
};

// Decodes PNG, JPEG, BMP, GIF (the first frame) or PNM; `name` stands for the path in messages. A
// picture of more than `most_pixels` is refused before a pixel is decoded.
Result<RgbPicture> decode_picture(std::span<const std::byte> bytes, const std::string& name,
                                  int64_t most_pixels = kMaxPicturePixels);

// Reads and decodes a file.
Result<RgbPicture> load_picture(const std::string& path);

// Copies a raw frame.
Result<RgbPicture> copy_frame(const PixelView& frame);

}  // namespace vkformer
