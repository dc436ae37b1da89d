// The image processors of Idefics3 and SmolVLM. A picture is cut into square tiles, row by row.
// The whole at the size of a tile follows them.
// Needs: RgbPicture, vkformer/picture.h.
#pragma once

#include "checkpoint/json_config.h"
#include "image/picture.h"
#include "image/picture_processor.h"
#include "image/prompt_images.h"

namespace vkformer {

class ImageTiles {
 public:
  static Result<ImageTiles> parse(const JsonConfig& config);

  // pixel_values (1, images, 3, tile, tile).
  Result<PromptImages> process(const RgbPicture& picture) const;

 private:
  ImageTiles() = default;
  // The first size, as [size] says.
  PictureSize first_size(const PictureSize& picture) const;
  // Multiples of a tile that hold that.
  PictureSize whole_tiles(const PictureSize& picture) const;
  Result<RgbPicture> resized(const RgbPicture& picture, const PictureSize& size) const;

  PictureSettings settings_;  // filter and values
  // kEdge: the longer side becomes longest_edge, the other is in proportion.
  enum class First : uint8_t { kAsIs, kEdge, kStretch } first_ = First::kEdge;
  int64_t longest_edge_ = 0;
  PictureSize size_;  // of kStretch
  int64_t tile_ = 0;  // pixels along a side
  bool splits_ = true;
};

}  // namespace vkformer
