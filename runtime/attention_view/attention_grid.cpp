#include "attention_view/attention_grid.h"

#include <algorithm>
#include <cmath>

#include "attention_view/attention_maps.h"
#include "attention_view/heat_map.h"
#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

using std::to_string;

constexpr int64_t kMargin = 20, kGap = 18, kBarWidth = 10, kTitleScale = 2;
// Sides that a map of automatic size has, and the height of the line above it.
constexpr int64_t kAutoSide = 160, kAutoMaxCell = 24, kNameHeight = kLinePitch + 3;
// Narrower maps have short names: "L11 H3".
constexpr int kLongNameUnits = 150;

int64_t maps_of(const AttentionMaps& maps) {
  return static_cast<int64_t>(maps.layers.size()) * maps.heads;
}

// A row for each layer; the heads of a single layer in rows.
int64_t maps_across(const AttentionMaps& maps) {
  if (maps.layers.size() > 1 && maps.heads > 1) return maps.heads;
  const auto all = static_cast<double>(maps_of(maps));
  return static_cast<int64_t>(std::ceil(std::sqrt(all)));
}

float largest_value(const AttentionMaps& maps) {
  float largest = 0.0f;
  for (const AttentionLayer& layer : maps.layers) {
    for (float value : layer.values) {
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
  }
  return largest;
}

Status check_options(const AttentionGridOptions& options) {
  if (options.cell_size < 0 || options.cell_size > kMaxHeatMapSide) {
    return invalid_argument(
        message({"The attention grid's [cell_size] is ", options.cell_size,
                 " pixels; give 0 for an automatic size, or 1 to ", kMaxHeatMapSide, "."}));
  }
  if (options.range == HeatMapRange::kZeroToOne || options.range == HeatMapRange::kZeroToMax) {
    return {};
  }
  return invalid_argument(
      message({"The attention grid's [range] is ", static_cast<int>(options.range),
               ", which is not a HeatMapRange; use kZeroToOne or kZeroToMax."}));
}

Status check_size(const AttentionMaps& maps, const AttentionGridLayout& at) {
  // Sides first: their product must not overflow.
  if (at.width <= kMaxHeatMapSide && at.height <= kMaxHeatMapSide &&
      at.width * at.height <= kMaxHeatMapPixels) {
    return {};
  }
  return invalid_argument(
      message({"The [attention grid] of ", at.down, " x ", at.across, " maps of ", maps.rows,
               " rows and ", maps.columns, " columns would be ", at.width, " x ", at.height,
               " pixels, over the limit of ", kMaxHeatMapSide, " a side and ", kMaxHeatMapPixels,
               " in all; choose smaller cells, or one layer or head."}));
}

void draw_map(std::span<const float> values, const AttentionMaps& maps, float top, int64_t cell,
              std::array<int64_t, 2> corner, Canvas& canvas) {
  size_t i = 0;
  for (int64_t r = 0; r < maps.rows; ++r) {
    for (int64_t c = 0; c < maps.columns; ++c, ++i) {
      const int64_t x = corner[0] + c * cell, y = corner[1] + r * cell;
      if (std::isfinite(values[i])) {
        canvas.fill(x, y, cell, cell, heat_map_color(values[i] / top));
      } else {
        canvas.hatch(x, y, cell, cell);
      }
    }
  }
  canvas.frame(corner[0] - 1, corner[1] - 1, maps.columns * cell + 2, maps.rows * cell + 2, kFrame);
}

std::string map_name(const AttentionMaps& maps, size_t layer, int head, int64_t room) {
  if (room >= kLongNameUnits) return head_name(maps, layer, head);
  const std::string number = "L" + to_string(maps.layers[layer].layer);
  if (maps.first_head < 0) return number;
  return number + " H" + to_string(maps.first_head + head);
}

void draw_bar(const AttentionGridLayout& at, Canvas& canvas) {
  for (int64_t i = 0; i < at.bar_h; ++i) {
    const auto fraction = 1.0f - static_cast<float>(i) / static_cast<float>(at.bar_h - 1);
    canvas.fill(at.bar_x, at.map_y + i, kBarWidth, 1, heat_map_color(fraction));
  }
  canvas.frame(at.bar_x - 1, at.map_y - 1, kBarWidth + 2, at.bar_h + 2, kFrame);
  const int64_t text_x = at.bar_x + kBarWidth + 6;
  canvas.text(text_x, at.map_y, at.ticks[0], 1, kInk);
  canvas.text(text_x, at.map_y + at.bar_h - kCapHeight, at.ticks[1], 1, kInk);
}

}  // namespace

Result<AttentionGridLayout> lay_out_attention_grid(const AttentionMaps& maps,
                                                   const AttentionGridOptions& options) {
  VKF_CHECK(check_attention_maps(maps));
  VKF_CHECK(check_options(options));
  AttentionGridLayout at;
  const int64_t longest = std::max(maps.rows, maps.columns);
  at.cell = options.cell_size > 0 ? options.cell_size
                                  : std::clamp<int64_t>(kAutoSide / longest, 1, kAutoMaxCell);
  at.across = maps_across(maps);
  at.down = (maps_of(maps) + at.across - 1) / at.across;
  at.map_w = maps.columns * at.cell;
  at.map_h = maps.rows * at.cell;
  // Maps of a few cells stand as far apart as their names need.
  at.step_x = std::max<int64_t>(at.map_w, text_units("L100 H100")) + kGap;
  at.step_y = at.map_h + kNameHeight + kGap;
  at.map_x = kMargin;
  at.map_y = kMargin + (options.title.empty() ? 0 : kLinePitch * kTitleScale + 12) + kNameHeight;
  if (options.range == HeatMapRange::kZeroToMax) {
    const float largest = largest_value(maps);
    if (largest > 0.0f) at.top = largest;
  }
  at.ticks = {heat_value_text(at.top, options.range), heat_value_text(0.0f, options.range)};
  at.bar_x = at.map_x + at.across * at.step_x;
  at.bar_h = std::clamp<int64_t>(at.map_h, 40, 160);
  const int64_t tick_w = std::max(text_units(at.ticks[0]), text_units(at.ticks[1]));
  at.width = at.bar_x + kBarWidth + 6 + tick_w + kMargin;
  at.height =
      std::max(at.map_y + at.down * at.step_y - kNameHeight - kGap, at.map_y + at.bar_h) + kMargin;
  VKF_CHECK(check_size(maps, at));
  at.title = heat_map_text(options.title, static_cast<int>((at.width - 2 * kMargin) / kTitleScale));
  return at;
}

Result<std::vector<std::byte>> draw_attention_grid(const AttentionMaps& maps,
                                                   const AttentionGridOptions& options) {
  VKF_ASSIGN(const AttentionGridLayout at, lay_out_attention_grid(maps, options));
  Canvas canvas(at.width, at.height);
  canvas.text(kMargin, kMargin, at.title, kTitleScale, kInk);
  for (int64_t i = 0; i < maps_of(maps); ++i) {
    const auto layer = static_cast<size_t>(i / maps.heads);
    const auto head = static_cast<int>(i % maps.heads);
    const int64_t x = at.map_x + i % at.across * at.step_x;
    const int64_t y = at.map_y + i / at.across * at.step_y;
    const int64_t room = at.step_x - 4;
    canvas.text(x, y - kNameHeight,
                heat_map_text(map_name(maps, layer, head, room), static_cast<int>(room)), 1, kInk);
    draw_map(head_values(maps, layer, head), maps, at.top, at.cell, {x, y}, canvas);
  }
  draw_bar(at, canvas);
  return encode_png(canvas, "attention grid");
}

}  // namespace vkformer
