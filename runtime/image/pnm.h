// PNM: the portable bitmap, graymap and pixmap formats P1 to P6.
// Needs: RgbPicture.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// Decodes the first picture. Samples up to any maximum are scaled to 0..255 and rounded. `name`
// stands for the path in messages.
Result<RgbPicture> decode_pnm(std::span<const std::byte> bytes, const std::string& name,
                              int64_t most_pixels);

}  // namespace vkformer
