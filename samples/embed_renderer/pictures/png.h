// Writes pictures.
#pragma once

#include <vkformer/result.h>

#include <cstdint>
#include <string>

namespace sample {

// Rows of RGBA from the top, of which alpha is dropped; owned by the caller.
struct PixelRows {
  const uint8_t* rgba = nullptr;
  int width = 0, height = 0;
};

vkformer::Status write_png(const std::string& path, const PixelRows& pixels);

}  // namespace sample
