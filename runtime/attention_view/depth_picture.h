// Depths as a picture.
#pragma once

#include <cstddef>
#include <vector>

#include "vkformer/depth.h"

namespace vkformer {

// Gray pixels as PNG bytes, the smallest value black and the largest white. An error where sizes do
// not fit the values, or a value is not finite.
Result<std::vector<std::byte>> draw_depth(const DepthMap& map);

}  // namespace vkformer
