// Resampling of 8-bit pictures with Pillow's filters and rounding: equal bytes for equal input.
// Needs: RgbPicture, vkformer/picture.h for the filters' names.
#pragma once

#include "image/picture.h"
#include "vkformer/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// The picture at another size. Columns first, then rows, each rounded to bytes; a direction that
// keeps its size is left alone. Fails where the new size is not one that a picture may have.
Result<RgbPicture> resize_picture(const RgbPicture& picture, int width, int height,
                                  Resampling resampling);

}  // namespace vkformer
