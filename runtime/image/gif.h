// GIF: the first frame of an animation, as Pillow shows it.
// Needs: RgbPicture.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// Decodes the first frame. Pixels that are marked transparent get their palette color. What the
// frame leaves free gets the transparent color or, without one, the first of the palette. A frame
// that reaches beyond the screen makes the picture larger. `name` stands for the path in messages.
Result<RgbPicture> decode_gif(std::span<const std::byte> bytes, const std::string& name,
                              int64_t most_pixels);

}  // namespace vkformer
