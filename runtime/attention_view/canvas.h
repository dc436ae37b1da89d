// Drawing: an RGB canvas with rectangles and text, the colors of attention, PNG bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// A red, green and blue byte, sRGB.
using Rgb = std::array<uint8_t, 3>;

// Font units: the height of capitals, and the comfortable distance of two lines.
inline constexpr int kCapHeight = 7, kLinePitch = 11;

inline constexpr Rgb kInk = {32, 32, 40}, kMuted = {96, 96, 108};
inline constexpr Rgb kBorder = {222, 224, 230}, kFrame = {120, 122, 132};
inline constexpr Rgb kWhite = {255, 255, 255}, kRed = {214, 32, 32};
// Smaller cells have neither borders nor room for a hatch.
inline constexpr int64_t kMinBorderedCell = 6;

// Width of printable ASCII in font units.
int text_units(std::string_view text);

// `text` as printable ASCII. Other characters become <U+00E9>, bytes that are not UTF-8 <0xFF>. It
// is cut with "..." where it would be wider than max_units (font units, a digit is 6 wide).
std::string heat_map_text(std::string_view text, int max_units);

// Color of a value scaled to 0..1: white to dark blue, lightness falling evenly.
Rgb heat_map_color(float fraction);

// An RGB picture; drawing outside it is cut off.
class Canvas {
 public:
  // All white. Precondition: both sizes are positive and somebody checked how large they are.
  Canvas(int64_t width, int64_t height)
      : width_(width), height_(height), bytes_(static_cast<size_t>(width * height * 3), 255) {}

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  const uint8_t* bytes() const { return bytes_.data(); }

  void fill(int64_t x, int64_t y, int64_t w, int64_t h, Rgb color);
  // One pixel of line thickness, inside.
  void frame(int64_t x, int64_t y, int64_t w, int64_t h, Rgb color);
  // Diagonal red and white stripes; solid red where stripes would not show.
  void hatch(int64_t x, int64_t y, int64_t w, int64_t h);

  enum class Turn : uint8_t { kNone, kUpwards };
  // Text whose capitals' upper left corner is at (x, y). kUpwards turns it a quarter to the left:
  // (x, y) is then the lower left corner, where the text starts.
  void text(int64_t x, int64_t y, std::string_view line, int scale, Rgb color,
            Turn turn = Turn::kNone);

 private:
  int64_t width_, height_;
  std::vector<uint8_t> bytes_;
};

// The bytes of an 8-bit RGB PNG file; `what` stands for the picture in messages.
Result<std::vector<std::byte>> encode_png(const Canvas& canvas, const std::string& what);

}  // namespace vkformer
