#include "attention_view/detection_boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Colors that differ for most labels, dark enough for white text.
constexpr std::array<Rgb, 8> kBoxColors = {Rgb{196, 30, 58},  Rgb{0, 102, 187}, Rgb{10, 122, 62},
                                           Rgb{150, 60, 190}, Rgb{190, 88, 0},  Rgb{0, 120, 130},
                                           Rgb{120, 90, 0},   Rgb{200, 0, 130}};
constexpr int kMostLabelUnits = 400;

// Lines and text are thicker on larger pictures.
int box_scale(const RgbPicture& picture) {
  return std::max(1, std::min(picture.width, picture.height) / 400);
}

int64_t pixel(double value, int side) {
  return std::llround(std::clamp(value, 0.0, static_cast<double>(side)));
}

std::string score_label(const Detection& one) {
  char score[32];
  std::snprintf(score, sizeof score, " %.2f", one.score);
  return heat_map_text(one.label + score, kMostLabelUnits);
}

void draw_box(Canvas& canvas, const RgbPicture& picture, const Detection& one, Rgb color) {
  const int scale = box_scale(picture);
  const int64_t x = pixel(one.left, picture.width);
  const int64_t y = pixel(one.top, picture.height);
  const int64_t w = pixel(one.right, picture.width) - x;
  const int64_t h = pixel(one.bottom, picture.height) - y;
  for (int64_t line = 0; line <= scale; ++line) {
    canvas.frame(x + line, y + line, w - 2 * line, h - 2 * line, color);
  }
  const std::string text = score_label(one);
  const int64_t tall = int64_t{kLinePitch} * scale;
  const int64_t wide = (int64_t{text_units(text)} + 4) * scale;
  const int64_t above = y >= tall ? y - tall : y;
  canvas.fill(x, above, wide, tall, color);
  canvas.text(x + 2 * scale, above + 2 * scale, text, scale, kWhite);
}

}  // namespace

Result<std::vector<std::byte>> draw_detections(const RgbPicture& picture,
                                               std::span<const Detection> detections) {
  for (const Detection& one : detections) {
    for (const double value : {one.left, one.top, one.right, one.bottom, one.score}) {
      if (std::isfinite(value)) continue;
      return invalid_argument(
          message({"[detections] has a box of label '", one.label,
                   "' with a coordinate or score that is not finite; leave it out."}));
    }
  }
  Canvas canvas(picture.width, picture.height);
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* row = picture.row(y);
    for (int x = 0; x < picture.width; ++x, row += 3) {
      canvas.fill(x, y, 1, 1, {row[0], row[1], row[2]});
    }
  }
  // The best one last, so that nothing covers it.
  for (size_t i = detections.size(); i-- > 0;) {
    const size_t color = std::hash<std::string>()(detections[i].label) % kBoxColors.size();
    draw_box(canvas, picture, detections[i], kBoxColors[color]);
  }
  return encode_png(canvas, "of detections");
}

}  // namespace vkformer
