#include "attention_view/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numbers>

#include "base/utf8_step.h"

// Internal functions only: a host may link its own copy of stb.
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ASSERT(x) ((void)0)
#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

namespace vkformer {
namespace {

int glyph_advance(char c) {
  return stb_easy_font_charinfo[c - 32].advance & 15;
}

}  // namespace

int text_units(std::string_view text) {
  int units = 0;
  for (char c : text) units += glyph_advance(c);
  // The last glyph's advance holds one unit of space.
  return std::max(units - 1, 0);
}

std::string heat_map_text(std::string_view text, int max_units) {
  // Reading stops at the limit, so that a label of megabytes costs no more than a line.
  std::string whole, cut;
  const int dots = text_units("...") + 1;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const char32_t code = step.valid ? utf8_value(text, step.length) : 0;
    char escaped[16] = {text[0]};
    if (!step.valid) {
      std::snprintf(escaped, sizeof escaped, "<0x%02X>", static_cast<uint8_t>(text[0]));
    } else if (code < 32 || code > 126) {
      std::snprintf(escaped, sizeof escaped, "<U+%04X>", static_cast<unsigned>(code));
    }
    whole += escaped;
    const int units = text_units(whole);
    if (units + dots <= max_units) cut = whole;
    if (units > max_units) return text_units("...") <= max_units ? cut + "..." : std::string();
    text.remove_prefix(step.valid ? step.length : 1);
  }
  return whole;
}

// A straight line of lightness in OKLab, at one hue, with the saturation that sRGB has room for.
// Ottosson, "A perceptual color space for image processing" (2020):
// linear sRGB = M1 * (M2 * (L, C cos h, C sin h))^3.
Rgb heat_map_color(float fraction) {
  const double t =
      std::isfinite(fraction) ? std::clamp(static_cast<double>(fraction), 0.0, 1.0) : 1.0;
  const double lightness = 1.0 - 0.72 * t;
  const double chroma = 0.42 * t * (1.0 - 0.74 * t);
  const double hue = 256.0 / 180.0 * std::numbers::pi;
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  const std::array<double, 3> linear = {
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
  };
  Rgb color = {};
  for (size_t i = 0; i < 3; ++i) {
    const double x = std::clamp(linear[i], 0.0, 1.0);
    const double gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1.0 / 2.4) - 0.055;
    color[i] = static_cast<uint8_t>(std::lround(gamma * 255.0));
  }
  return color;
}

void Canvas::fill(int64_t x, int64_t y, int64_t w, int64_t h, Rgb color) {
  const int64_t x1 = std::min(x + w, width_), y1 = std::min(y + h, height_);
  for (int64_t row = std::max<int64_t>(y, 0); row < y1; ++row) {
    for (int64_t column = std::max<int64_t>(x, 0); column < x1; ++column) {
      std::memcpy(&bytes_[static_cast<size_t>((row * width_ + column) * 3)], color.data(), 3);
    }
  }
}

void Canvas::frame(int64_t x, int64_t y, int64_t w, int64_t h, Rgb color) {
  fill(x, y, w, 1, color);
  fill(x, y + h - 1, w, 1, color);
  fill(x, y, 1, h, color);
  fill(x + w - 1, y, 1, h, color);
}

void Canvas::hatch(int64_t x, int64_t y, int64_t w, int64_t h) {
  fill(x, y, w, h, kRed);
  if (w + 1 < kMinBorderedCell) return;
  const int64_t period = w >= 16 ? 8 : 4;
  for (int64_t j = 0; j < h; ++j) {
    for (int64_t i = 0; i < w; ++i) {
      if ((i + j) % period >= period / 2) fill(x + i, y + j, 1, 1, kWhite);
    }
  }
}

void Canvas::text(int64_t x, int64_t y, std::string_view line, int scale, Rgb color, Turn turn) {
  struct Vertex {
    float x, y, z;
    unsigned char color[4];
  };
  int64_t pen = 0;
  for (char c : line) {
    std::array<Vertex, 4 * 32> corners = {};
    char glyph[2] = {c, 0};
    const int quads =
        stb_easy_font_print(0, 0, glyph, nullptr, corners.data(), static_cast<int>(sizeof corners));
    for (int q = 0; q < quads; ++q) {
      const Vertex& from = corners[static_cast<size_t>(q) * 4];
      const Vertex& to = corners[static_cast<size_t>(q) * 4 + 2];
      const auto u = (pen + static_cast<int64_t>(from.x)) * scale;
      const auto v = static_cast<int64_t>(from.y) * scale;
      const auto w = static_cast<int64_t>(to.x - from.x) * scale;
      const auto h = static_cast<int64_t>(to.y - from.y) * scale;
      if (turn == Turn::kUpwards) {
        fill(x + v, y - u - w, h, w, color);
      } else {
        fill(x + u, y + v, w, h, color);
      }
    }
    pen += glyph_advance(c);
  }
}

Result<std::vector<std::byte>> encode_png(const Canvas& canvas, const std::string& what) {
  int size = 0;
  const std::unique_ptr<unsigned char, decltype(&std::free)> png(
      stbi_write_png_to_mem(canvas.bytes(), 0, static_cast<int>(canvas.width()),
                            static_cast<int>(canvas.height()), 3, &size),
      &std::free);
  if (png == nullptr || size <= 0) {
    return Error{ErrorCode::kOutOfMemory, "There is no memory to compress the [" + what + "] of " +
                                              std::to_string(canvas.width()) + " x " +
                                              std::to_string(canvas.height()) +
                                              " pixels; make it smaller."};
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(png.get());
  return std::vector<std::byte>(bytes, bytes + size);
}

}  // namespace vkformer
