// Masks laid over the picture.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "image/picture.h"
#include "vkformer/segment.h"

namespace vkformer {

// Half the picture's color and half the mask's, as PNG bytes. An error where a mask has another
// size.
Result<std::vector<std::byte>> draw_masks(const RgbPicture& picture,
                                          std::span<const PictureMask> masks);

}  // namespace vkformer
