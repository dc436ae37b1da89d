// PNG, JPEG and BMP by stb_image, which trusts more than a file deserves: picture.h and
// jpeg_segments.h look first.
// Needs: Result, RgbPicture.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// `format` and `name` (the path) are for messages.
Result<RgbPicture> decode_with_stb(std::span<const std::byte> bytes, const char* format,
                                   const std::string& name, int64_t most_pixels);

}  // namespace vkformer
