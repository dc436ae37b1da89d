// Up to 255 colors that stand for all of some pictures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sample {

using Rgb = std::array<uint8_t, 3>;

class Palette {
 public:
  // From a sample of pixels; at least one.
  explicit Palette(std::vector<Rgb> pixels);
  const std::vector<Rgb>& colors() const { return colors_; }
  // Index of the nearest color.
  uint8_t nearest(const Rgb& color) const;

 private:
  std::vector<Rgb> colors_;
  mutable std::vector<int16_t> known_;  // by the upper 6 bits of each channel, -1: not asked yet
};

}  // namespace sample
