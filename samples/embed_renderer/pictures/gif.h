// An animated GIF, packed by LZW. It has one palette for all frames (median cut: Heckbert 1982,
// "Color image quantization for frame buffer display"). Of each frame it has only what has changed.
#pragma once

#include <vkformer/result.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pictures/png.h"

namespace sample {

class Gif {
 public:
  // Frames are made `width` pixels wide by averaging, at most as wide as they come.
  explicit Gif(int width) : most_width_(width) {}

  // `seconds` is how long the frame stays.
  void add(const PixelRows& pixels, double seconds);
  vkformer::Status write(const std::string& path) const;

 private:
  struct Image {
    std::vector<uint8_t> rgb;
    double seconds = 0.0;
  };
  int most_width_;
  int width_ = 0, height_ = 0;
  std::vector<Image> images_;
};

}  // namespace sample
