#include "attention_view/heat_map.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <new>
#include <span>
#include <utility>

#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"
#include "checkpoint/replace_file.h"

namespace vkformer {
namespace {

using std::to_string;

// Font units: least distance of two lines, widest texts.
constexpr int kTightPitch = 10;
constexpr int kMaxLabelUnits = 108, kMaxAxisUnits = 240, kMaxTitleUnits = 760;
constexpr int kMapTitleScale = 2, kMapMargin = 20;
// Picture sizes that an automatic cell size aims at, in pixels.
constexpr int64_t kAutoMinWidth = 600, kAutoMaxMapCell = 72;
constexpr int64_t kAutoGridWidth = 1200, kAutoGridHeight = 1600;
constexpr int64_t kMinBarHeight = 130, kMaxBarHeight = 640;

Status check_map_labels(const char* name, const std::vector<std::string>& labels, int count) {
  if (labels.empty() || labels.size() == static_cast<size_t>(count)) return {};
  return invalid_argument(
      message({"The heat map's [", name, "] has ", labels.size(), " entries for ", count,
               " of them; give one for each, or none for numbers."}));
}

Status check_heat_map(const HeatMap& map, const HeatMapOptions& options) {
  if (map.rows < 1 || map.columns < 1) {
    return invalid_argument(
        message({"The heat map's [values] are empty: it has ", map.rows, " rows and ", map.columns,
                 " columns; give at least one of each."}));
  }
  const int64_t count = int64_t{map.rows} * map.columns;
  if (map.values.size() != static_cast<uint64_t>(count)) {
    return invalid_argument(
        message({"The heat map's [values] hold ", map.values.size(), " numbers, but ", map.rows,
                 " rows of ", map.columns, " columns are ", count, "; make the sizes agree."}));
  }
  VKF_CHECK(check_map_labels("row_labels", map.row_labels, map.rows));
  VKF_CHECK(check_map_labels("column_labels", map.column_labels, map.columns));
  if (options.cell_size < 0 || options.cell_size > kMaxHeatMapSide) {
    return invalid_argument(
        message({"The heat map's [cell_size] is ", options.cell_size,
                 " pixels; give 0 for an automatic size, or 1 to ", kMaxHeatMapSide, "."}));
  }
  if (options.range != HeatMapRange::kZeroToOne && options.range != HeatMapRange::kZeroToMax) {
    return invalid_argument(
        message({"The heat map's [range] is ", static_cast<int>(options.range),
                 ", which is not a HeatMapRange; use kZeroToOne or kZeroToMax."}));
  }
  return {};
}

int64_t automatic_cell(int64_t rows, int64_t columns) {
  // A tall map may scroll: rows stay readable as long as the width allows it.
  const int64_t by_height = std::max<int64_t>(kAutoGridHeight / rows, kLinePitch + 1);
  int64_t cell =
      std::clamp<int64_t>(std::min(kAutoGridWidth / columns, by_height), 1, kAutoMaxMapCell);
  while (cell > 1 && (rows * cell > kMaxHeatMapSide - 4096 ||
                      (rows * cell + 400) * (columns * cell + 700) > kMaxHeatMapPixels)) {
    --cell;
  }
  return cell;
}

void find_range(const HeatMap& map, HeatMapRange range, HeatMapLayout& at) {
  float largest = 0.0f;
  for (float value : map.values) {
    if (!std::isfinite(value)) {
      at.not_finite = true;
      continue;
    }
    largest = std::max(largest, value);
    if (value < 0.0f) at.below = true;
  }
  if (range == HeatMapRange::kZeroToMax && largest > 0.0f) at.top = largest;
  // A softmax in f32 may sum to a little over one; that is not worth a mark.
  at.above = largest > at.top * 1.00001f;
  for (size_t i = 0; i < at.ticks.size(); ++i) {
    at.ticks[i] = heat_value_text(at.top * (static_cast<float>(4 - i) * 0.25f), range);
  }
  if (at.above) at.ticks.front() = ">= " + at.ticks.front();
  if (at.below) at.ticks.back() = "<= " + at.ticks.back();
}

std::vector<std::string> shown_labels(const std::vector<std::string>& labels, int count,
                                      int stride) {
  std::vector<std::string> shown;
  for (int64_t i = 0; i < count; i += stride) {
    shown.push_back(labels.empty() ? to_string(i)
                                   : heat_map_text(labels[static_cast<size_t>(i)], kMaxLabelUnits));
  }
  return shown;
}

int64_t widest(std::span<const std::string> texts) {
  int units = 0;
  for (const std::string& text : texts) units = std::max(units, text_units(text));
  return units;
}

void choose_labels(const HeatMap& map, const HeatMapOptions& options, HeatMapLayout& at) {
  const bool large = std::max(at.grid_w, at.grid_h) >= kAutoMinWidth;
  at.scale = at.cell >= 2 * kTightPitch || (at.cell < kTightPitch && large) ? 2 : 1;
  for (int stride : {1, 2, 5, 10, 20}) {
    at.stride = stride;
    if (stride * at.cell >= kTightPitch * at.scale) break;
  }
  at.row_labels = shown_labels(map.row_labels, map.rows, at.stride);
  at.column_labels = shown_labels(map.column_labels, map.columns, at.stride);
  at.vertical = at.stride > 1 || (widest(at.column_labels) + 4) * at.scale > at.cell;
  at.row_axis = heat_map_text(options.row_axis, kMaxAxisUnits);
  at.column_axis = heat_map_text(options.column_axis, kMaxAxisUnits);
}

// Places everything from the upper left to the lower right.
void place(const HeatMap& map, const HeatMapOptions& options, HeatMapLayout& at) {
  const int64_t s = at.scale;
  const int64_t line = kLinePitch * s;
  const int64_t gap = 6 * s;
  at.title_y = kMapMargin;
  const int64_t below_title =
      kMapMargin + (map.title.empty() ? 0 : kLinePitch * kMapTitleScale + 12);
  at.column_axis_y = below_title;
  const int64_t label_h = at.vertical ? widest(at.column_labels) * s : kCapHeight * s;
  at.grid_y = below_title + (at.column_axis.empty() ? 0 : line + gap) + label_h + gap;
  at.grid_x = kMapMargin + (at.row_axis.empty() ? 0 : line + gap) + widest(at.row_labels) * s + gap;

  at.bar_x = at.grid_x + at.grid_w + 4 * gap;
  at.bar_y = at.grid_y;
  at.bar_w = 10 * s;
  at.bar_h = std::clamp(at.grid_h, kMinBarHeight, kMaxBarHeight);
  at.tick_text_w = widest(at.ticks) * s;
  int64_t right = at.bar_x + at.bar_w + gap + at.tick_text_w + gap + line;
  int64_t bottom = std::max(at.grid_y + at.grid_h, at.bar_y + at.bar_h + line);
  if (at.not_finite) {
    right = std::max(right, at.bar_x + at.bar_w + gap + text_units("not finite") * s);
    bottom = std::max(bottom, at.bar_y + at.bar_h + line + at.bar_w + 4 * s);
  }
  // Names longer than the grid's sides are centered on it as far as the picture's edges allow.
  right = std::max(right, kMapMargin + text_units(at.column_axis) * s);
  bottom = std::max(bottom, below_title + text_units(at.row_axis) * s);
  at.height = bottom + kMapMargin;

  const std::string title = heat_map_text(map.title, kMaxTitleUnits);
  const int64_t title_w = text_units(title) * kMapTitleScale + 1;
  int64_t least = std::min(title_w + 2 * kMapMargin, kAutoMinWidth);
  if (options.cell_size == 0) least = kAutoMinWidth;
  at.width = std::max(right + kMapMargin, least);
  const int64_t shift = (at.width - right - kMapMargin) / 2;
  at.grid_x += shift;
  at.bar_x += shift;
  const int64_t room =
      std::min<int64_t>((at.width - 2 * kMapMargin) / kMapTitleScale, kMaxTitleUnits);
  at.title = heat_map_text(map.title, static_cast<int>(room));
}

// Start of something `length` long centered on [begin, begin + span), kept inside [low, high).
int64_t centered(int64_t begin, int64_t span, int64_t length, int64_t low, int64_t high) {
  return std::max(low, std::min(begin + (span - length) / 2, high - length));
}

void draw_cells(const HeatMap& map, const HeatMapLayout& at, Canvas& canvas) {
  const int64_t border = at.cell >= kMinBorderedCell ? 1 : 0;
  const int64_t side = at.cell - border;
  canvas.fill(at.grid_x, at.grid_y, at.grid_w, at.grid_h, kBorder);
  for (int64_t r = 0; r < map.rows; ++r) {
    for (int64_t c = 0; c < map.columns; ++c) {
      const float value = map.values[static_cast<size_t>(r * map.columns + c)];
      const int64_t x = at.grid_x + c * at.cell, y = at.grid_y + r * at.cell;
      if (std::isfinite(value)) {
        canvas.fill(x, y, side, side, heat_map_color(value / at.top));
      } else {
        canvas.hatch(x, y, side, side);
      }
    }
  }
  // The last cells' own borders lie under the frame.
  canvas.frame(at.grid_x - 1, at.grid_y - 1, at.grid_w + 2 - border, at.grid_h + 2 - border,
               kFrame);
}

void draw_labels(const HeatMapLayout& at, Canvas& canvas) {
  const int s = at.scale;
  const int64_t gap = 6 * s, cap = kCapHeight * s;
  int64_t labels_w = widest(at.row_labels) * s;
  for (size_t i = 0; i < at.row_labels.size(); ++i) {
    const int64_t y = at.grid_y + static_cast<int64_t>(i) * at.stride * at.cell;
    const int64_t x = at.grid_x - gap - text_units(at.row_labels[i]) * s;
    canvas.text(x, y + (at.cell - cap) / 2, at.row_labels[i], s, kInk);
    if (at.stride > 1) canvas.fill(at.grid_x - 1 - 2 * s, y + at.cell / 2, 2 * s, 1, kFrame);
  }
  int64_t labels_h = cap;
  for (size_t i = 0; i < at.column_labels.size(); ++i) {
    const std::string& label = at.column_labels[i];
    const int64_t x = at.grid_x + static_cast<int64_t>(i) * at.stride * at.cell;
    const int64_t length = text_units(label) * s;
    if (at.vertical) {
      canvas.text(x + (at.cell - cap) / 2, at.grid_y - gap, label, s, kInk, Canvas::Turn::kUpwards);
      labels_h = std::max(labels_h, length);
    } else {
      canvas.text(x + (at.cell - length) / 2, at.grid_y - gap - cap, label, s, kInk);
    }
    if (at.stride > 1) canvas.fill(x + at.cell / 2, at.grid_y - 1 - 2 * s, 1, 2 * s, kFrame);
  }
  const int64_t name_w = text_units(at.column_axis) * s;
  canvas.text(centered(at.grid_x, at.grid_w, name_w, kMapMargin, at.width - kMapMargin),
              at.column_axis_y, at.column_axis, s, kMuted);
  const int64_t name_h = text_units(at.row_axis) * s;
  const int64_t y =
      centered(at.grid_y, at.grid_h, name_h, at.column_axis_y, at.height - kMapMargin);
  canvas.text(at.grid_x - gap - labels_w - gap - kLinePitch * s, y + name_h, at.row_axis, s, kMuted,
              Canvas::Turn::kUpwards);
}

void draw_bar(const HeatMapLayout& at, Canvas& canvas) {
  const int s = at.scale;
  const int64_t gap = 6 * s, cap = kCapHeight * s;
  for (int64_t i = 0; i < at.bar_h; ++i) {
    const auto fraction = 1.0f - static_cast<float>(i) / static_cast<float>(at.bar_h - 1);
    canvas.fill(at.bar_x, at.bar_y + i, at.bar_w, 1, heat_map_color(fraction));
  }
  canvas.frame(at.bar_x - 1, at.bar_y - 1, at.bar_w + 2, at.bar_h + 2, kFrame);
  const int64_t text_x = at.bar_x + at.bar_w + gap;
  for (size_t i = 0; i < at.ticks.size(); ++i) {
    const int64_t y = at.bar_y + (at.bar_h - 1) * static_cast<int64_t>(i) / 4;
    canvas.fill(at.bar_x + at.bar_w, y, 3 * s, 1, kFrame);
    canvas.text(text_x, y - cap / 2, at.ticks[i], s, kInk);
  }
  const int64_t name_h = text_units("attention") * s;
  const int64_t y = centered(at.bar_y, at.bar_h, name_h, 0, at.height - kMapMargin);
  canvas.text(text_x + at.tick_text_w + gap, y + name_h, "attention", s, kMuted,
              Canvas::Turn::kUpwards);
  if (!at.not_finite) return;
  const int64_t swatch_y = at.bar_y + at.bar_h + kLinePitch * s;
  canvas.hatch(at.bar_x, swatch_y, at.bar_w, at.bar_w);
  canvas.frame(at.bar_x - 1, swatch_y - 1, at.bar_w + 2, at.bar_w + 2, kFrame);
  canvas.text(text_x, swatch_y + (at.bar_w - cap) / 2, "not finite", s, kInk);
}

}  // namespace

// Locale-free: a host's decimal comma must not reach the picture.
std::string heat_value_text(float value, HeatMapRange range) {
  char buffer[48];
  const auto [format, digits] = range == HeatMapRange::kZeroToOne
                                    ? std::pair(std::chars_format::fixed, 2)
                                    : std::pair(std::chars_format::general, 3);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format, digits);
  return end.ec == std::errc() ? std::string(buffer, end.ptr) : std::string("?");
}

Result<HeatMapLayout> lay_out_heat_map(const HeatMap& map, const HeatMapOptions& options) {
  VKF_CHECK(check_heat_map(map, options));
  HeatMapLayout at;
  at.cell = options.cell_size > 0 ? options.cell_size : automatic_cell(map.rows, map.columns);
  at.grid_w = map.columns * at.cell;
  at.grid_h = map.rows * at.cell;
  find_range(map, options.range, at);
  choose_labels(map, options, at);
  place(map, options, at);
  if (at.width > kMaxHeatMapSide || at.height > kMaxHeatMapSide ||
      at.width * at.height > kMaxHeatMapPixels) {
    return invalid_argument(message(
        {"The [heat map] of ", map.rows, " rows and ", map.columns, " columns would be ", at.width,
         " x ", at.height, " pixels, over the limit of ", kMaxHeatMapSide, " a side and ",
         kMaxHeatMapPixels, " in all; choose a smaller cell size or draw a part of the map."}));
  }
  return at;
}

Result<std::vector<std::byte>> draw_heat_map(const HeatMap& map, const HeatMapOptions& options) {
  try {
    VKF_ASSIGN(const HeatMapLayout at, lay_out_heat_map(map, options));
    Canvas canvas(at.width, at.height);
    const int64_t title_w = text_units(at.title) * kMapTitleScale + 1;
    const int64_t title_x =
        centered(at.grid_x, at.grid_w, title_w, kMapMargin, at.width - kMapMargin);
    // Printed twice, one pixel apart: the font has no bold face.
    canvas.text(title_x, at.title_y, at.title, kMapTitleScale, kInk);
    canvas.text(title_x + 1, at.title_y, at.title, kMapTitleScale, kInk);
    draw_cells(map, at, canvas);
    draw_labels(at, canvas);
    draw_bar(at, canvas);
    return encode_png(canvas, "heat map");
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory,
                 "The [heat map] does not fit into memory; choose a smaller cell size."};
  }
}

Status save_heat_map(const std::string& path, const std::vector<std::byte>& bytes) {
  const Status written = replace_file(path, {bytes});
  if (written) return {};
  return Error{written.error().code == ErrorCode::kNotFound ? ErrorCode::kNotFound
                                                            : ErrorCode::kInvalidArgument,
               "The heat map could not be saved: " + written.error().message +
                   " Choose a path that can be written."};
}

}  // namespace vkformer
