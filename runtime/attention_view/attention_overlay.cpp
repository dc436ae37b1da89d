#include "attention_view/attention_overlay.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

Status check_map(const PatchMap& map) {
  if (map.rows < 1 || map.columns < 1) {
    return invalid_argument(
        message({"The attention overlay has [", map.rows, "] rows and [", map.columns,
                 "] columns of patches; give at least one of each."}));
  }
  const int64_t count = int64_t{map.rows} * map.columns;
  if (map.values.size() != static_cast<uint64_t>(count)) {
    return invalid_argument(message({"The attention overlay's [values] hold ", map.values.size(),
                                     " weights, but ", map.rows, " rows of ", map.columns,
                                     " patches are ", count, "; give one a patch."}));
  }
  for (size_t i = 0; i < map.values.size(); ++i) {
    if (std::isfinite(map.values[i])) continue;
    return invalid_argument(message(
        {"The attention overlay's weight [", i, "] is not finite; there is no color for it."}));
  }
  return {};
}

Status check_options(const AttentionOverlayOptions& options) {
  if (!(options.strength >= 0 && options.strength <= 1)) {
    return invalid_argument(message({"The attention overlay's [strength] is ", options.strength,
                                     ", but must lie between 0 and 1."}));
  }
  if (options.range != HeatMapRange::kZeroToOne && options.range != HeatMapRange::kZeroToMax) {
    return invalid_argument(
        message({"The attention overlay's [range] is ", static_cast<int>(options.range),
                 ", which is not a HeatMapRange; use kZeroToOne or kZeroToMax."}));
  }
  const PictureRegion& r = options.region;
  const bool finite = std::isfinite(r.left) && std::isfinite(r.top) && std::isfinite(r.width) &&
                      std::isfinite(r.height);
  const bool whole = r.width == 0 && r.height == 0;
  if (finite && (whole || (r.width > 0 && r.height > 0))) return {};
  return invalid_argument(message(
      {"The attention overlay's [region] is ", r.width, " x ", r.height, " pixels at ", r.left,
       ", ", r.top, ", but must have finite numbers and positive sizes, or none at all."}));
}

}  // namespace

double patch_weight(const PatchMap& map, double u, double v) {
  const double x = std::clamp(u - 0.5, 0.0, static_cast<double>(map.columns - 1));
  const double y = std::clamp(v - 0.5, 0.0, static_cast<double>(map.rows - 1));
  const auto left = static_cast<int64_t>(x), top = static_cast<int64_t>(y);
  const int64_t right = std::min<int64_t>(left + 1, map.columns - 1);
  const int64_t bottom = std::min<int64_t>(top + 1, map.rows - 1);
  const double across = x - static_cast<double>(left), down = y - static_cast<double>(top);
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<double>(map.values[static_cast<size_t>(row * map.columns + column)]);
  };
  const double above = at(top, left) * (1 - across) + at(top, right) * across;
  const double below = at(bottom, left) * (1 - across) + at(bottom, right) * across;
  return above * (1 - down) + below * down;
}

Result<std::vector<std::byte>> draw_attention_overlay(const RgbPicture& picture,
                                                      const PatchMap& map,
                                                      const AttentionOverlayOptions& options) {
  VKF_CHECK(check_map(map));
  VKF_CHECK(check_options(options));
  PictureRegion region = options.region;
  if (region.width == 0) {
    region = {.width = static_cast<double>(picture.width),
              .height = static_cast<double>(picture.height)};
  }
  double top = 1.0;
  if (options.range == HeatMapRange::kZeroToMax) {
    const float largest = *std::max_element(map.values.begin(), map.values.end());
    if (largest > 0.0f) top = static_cast<double>(largest);
  }
  Canvas canvas(picture.width, picture.height);
  for (int y = 0; y < picture.height; ++y) {
    const uint8_t* from = picture.row(y);
    const double v = (y + 0.5 - region.top) / region.height;
    for (int x = 0; x < picture.width; ++x, from += 3) {
      const double u = (x + 0.5 - region.left) / region.width;
      Rgb pixel = {from[0], from[1], from[2]};
      if (u >= 0 && u < 1 && v >= 0 && v < 1) {
        const double weight = patch_weight(map, u * map.columns, v * map.rows);
        const double share = options.strength * std::clamp(weight / top, 0.0, 1.0);
        for (size_t i = 0; i < 3; ++i) {
          const double mixed = pixel[i] + share * (kRed[i] - pixel[i]);
          pixel[i] = static_cast<uint8_t>(std::lround(mixed));
        }
      }
      canvas.fill(x, y, 1, 1, pixel);
    }
  }
  return encode_png(canvas, "attention overlay");
}

}  // namespace vkformer
