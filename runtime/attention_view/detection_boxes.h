// Boxes of found objects drawn over the picture.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "image/picture.h"
#include "vkformer/detect.h"

namespace vkformer {

// Draws and writes PNG bytes; coordinates that are not finite are an error.
Result<std::vector<std::byte>> draw_detections(const RgbPicture& picture,
                                               std::span<const Detection> detections);

}  // namespace vkformer
