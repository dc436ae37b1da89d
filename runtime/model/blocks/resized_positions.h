// Learned positions of a grid of patches, resized for a picture of another size, as Hugging Face's
// models do it with torch's interpolate.
#pragma once

#include <span>
#include <vector>

#include "model/blocks/picture_embedding.h"

namespace vkformer {

enum class PositionFilter : uint8_t {
  kBilinear,           // of the two nearest rows and columns
  kBilinearAntialias,  // the same, widened where the grid becomes smaller
  kBicubic,            // Keys (1981), a = -0.75, of the four nearest rows and columns
  kBicubicAntialias,   // a = -0.5, widened where the grid becomes smaller
};

// values (from.height * from.width, D) -> (to.height * to.width, D).
std::vector<float> resized_positions(std::span<const float> values, const GridSize& from,
                                     const GridSize& to, int64_t width, PositionFilter filter);

}  // namespace vkformer
