#include "pictures/png.h"

#include <cstddef>
#include <vector>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace sample {

vkformer::Status write_png(const std::string& path, const PixelRows& pixels) {
  const size_t count = static_cast<size_t>(pixels.width) * static_cast<size_t>(pixels.height);
  std::vector<uint8_t> rgb(3 * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = pixels.rgba[4 * i + c];
  }
  stbi_write_png_compression_level = 16;
  const int written =
      stbi_write_png(path.c_str(), pixels.width, pixels.height, 3, rgb.data(), 3 * pixels.width);
  if (written != 0) return {};
  return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                         "[" + path + "] could not be written; does its folder exist?"};
}

}  // namespace sample
