// Qwen2-VL's image processor, which Qwen2.5-VL and Qwen3-VL use, too. A picture keeps its
// proportions and becomes a list of square patches. Those of one token follow each other.
// Needs: RgbPicture, vkformer/picture.h.
#pragma once

#include "checkpoint/json_config.h"
#include "image/picture.h"
#include "image/picture_processor.h"
#include "image/prompt_images.h"

namespace vkformer {

class ImagePatches {
 public:
  static Result<ImagePatches> parse(const JsonConfig& config);

  // pixel_values (patches, 3 x frames x patch x patch) and image_grid_thw (1, 3), in patches.
  Result<PromptImages> process(const RgbPicture& picture) const;

 private:
  ImagePatches() = default;
  int64_t unit() const { return patch_ * merge_; }  // pixels along a side of a token
  // Multiples of a unit, of as many pixels in all as the limits allow, near the proportions.
  Result<PictureSize> fitting_size(const PictureSize& picture) const;
  void write(const RgbPicture& picture, std::byte* out) const;

  PictureSettings settings_;  // filter and values
  bool resizes_ = true;
  int64_t least_pixels_ = 0;
  int64_t most_pixels_ = 0;
  int64_t patch_ = 14;  // pixels along a side
  int64_t frames_ = 2;  // of a patch: a still picture is all of them
  int64_t merge_ = 2;   // patches along a side of a token
};

}  // namespace vkformer
