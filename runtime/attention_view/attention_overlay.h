// Weights of patches blended over the picture that they were computed of.
// Needs: vkformer/attention_view.h for the weights that callers hand in.
#pragma once

#include <cstddef>
#include <vector>

#include "image/picture.h"
#include "vkformer/attention_view.h"

namespace vkformer {

// The weight at a place between the patches' middles, bilinear; (u, v) are patches from the upper
// left corner of the first one. Outside the outer middles the nearest weights go on.
double patch_weight(const PatchMap& map, double u, double v);

// Blends and writes PNG bytes. Precondition: `rgb` holds height rows of width pixels.
Result<std::vector<std::byte>> draw_attention_overlay(const RgbPicture& picture,
                                                      const PatchMap& map,
                                                      const AttentionOverlayOptions& options);

}  // namespace vkformer
