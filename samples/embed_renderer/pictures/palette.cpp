#include "pictures/palette.h"

#include <algorithm>
#include <limits>

namespace sample {

namespace {

constexpr size_t kMostColors = 255;

// A range of the pixels, which are sorted into place as boxes are cut.
struct ColorBox {
  size_t begin = 0, end = 0;
  size_t channel = 0;   // of the widest spread
  double weight = 0.0;  // what cutting it gains
};

ColorBox measure(const std::vector<Rgb>& pixels, size_t begin, size_t end) {
  ColorBox box{begin, end};
  std::array<double, 3> sum{}, squares{};
  for (size_t i = begin; i < end; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      sum[c] += pixels[i][c];
      squares[c] += static_cast<double>(pixels[i][c]) * pixels[i][c];
    }
  }
  const auto count = static_cast<double>(end - begin);
  for (size_t c = 0; c < 3; ++c) {
    const double spread = squares[c] - sum[c] * sum[c] / count;  // the sum of squared errors
    if (spread > box.weight) {
      box.weight = spread;
      box.channel = c;
    }
  }
  return box;
}

}  // namespace

Palette::Palette(std::vector<Rgb> pixels) : known_(size_t{1} << 18, int16_t{-1}) {
  std::vector<ColorBox> boxes = {measure(pixels, 0, pixels.size())};
  while (boxes.size() < kMostColors) {
    const auto widest =
        std::max_element(boxes.begin(), boxes.end(),
                         [](const ColorBox& a, const ColorBox& b) { return a.weight < b.weight; });
    if (widest->weight <= 0.0) break;
    const ColorBox box = *widest;
    const size_t middle = (box.begin + box.end) / 2, c = box.channel;
    const auto at = [&](size_t i) { return pixels.begin() + static_cast<ptrdiff_t>(i); };
    std::nth_element(at(box.begin), at(middle), at(box.end),
                     [c](const Rgb& a, const Rgb& b) { return a[c] < b[c]; });
    *widest = measure(pixels, box.begin, middle);
    boxes.push_back(measure(pixels, middle, box.end));
  }
  for (const ColorBox& box : boxes) {
    std::array<size_t, 3> sum{};
    for (size_t i = box.begin; i < box.end; ++i) {
      for (size_t c = 0; c < 3; ++c) sum[c] += pixels[i][c];
    }
    const size_t count = std::max<size_t>(box.end - box.begin, 1);
    colors_.push_back({static_cast<uint8_t>((sum[0] + count / 2) / count),
                       static_cast<uint8_t>((sum[1] + count / 2) / count),
                       static_cast<uint8_t>((sum[2] + count / 2) / count)});
  }
}

uint8_t Palette::nearest(const Rgb& color) const {
  int16_t& known =
      known_[static_cast<size_t>(color[0] >> 2) << 12 | static_cast<size_t>(color[1] >> 2) << 6 |
             static_cast<size_t>(color[2] >> 2)];
  if (known >= 0) return static_cast<uint8_t>(known);
  int best = std::numeric_limits<int>::max();
  for (size_t i = 0; i < colors_.size(); ++i) {
    int distance = 0;
    for (size_t c = 0; c < 3; ++c) {
      const int off = color[c] - colors_[i][c];
      distance += off * off;
    }
    if (distance < best) {
      best = distance;
      known = static_cast<int16_t>(i);
    }
  }
  return static_cast<uint8_t>(known);
}

}  // namespace sample
