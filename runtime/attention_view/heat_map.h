// Attention heat maps: where everything goes (a printable layout), then pixels, then PNG bytes.
// Needs: vkformer/heat_map.h for the values that callers hand in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention_view/canvas.h"
#include "vkformer/heat_map.h"
#include "vkformer/result.h"

namespace vkformer {

// Pixels a side and pixels in all that a heat map may have.
inline constexpr int64_t kMaxHeatMapSide = 65536;
inline constexpr int64_t kMaxHeatMapPixels = int64_t{1} << 26;

// Places of everything in the picture. All lengths are pixels, x to the right, y downwards.
struct HeatMapLayout {
  int64_t width = 0;
  int64_t height = 0;
  int64_t cell = 0;           // side of a cell, with its border
  int64_t grid_x = 0;         // left edge of the first cell
  int64_t grid_y = 0;         // upper edge of the first cell
  int64_t grid_w = 0;         // columns * cell
  int64_t grid_h = 0;         // rows * cell
  int64_t title_y = 0;        // upper edge of the title
  int64_t column_axis_y = 0;  // upper edge of the column axis' name
  int64_t bar_x = 0;          // the color bar
  int64_t bar_y = 0;
  int64_t bar_w = 0;
  int64_t bar_h = 0;
  int64_t tick_text_w = 0;                 // widest number beside the color bar
  int scale = 1;                           // pixels per unit of the font
  int stride = 1;                          // every stride-th row and column has a label
  bool vertical = false;                   // column labels read upwards
  float top = 1.0f;                        // value of the darkest color
  bool below = false;                      // some value is under 0
  bool above = false;                      // some value is over `top`
  bool not_finite = false;                 // some value is NaN or infinite
  std::string title;                       // shortened to fit
  std::string row_axis;                    // shortened
  std::string column_axis;                 // shortened
  std::vector<std::string> row_labels;     // shortened, one for each stride-th row
  std::vector<std::string> column_labels;  // shortened, one for each stride-th column
  std::array<std::string, 5> ticks;        // numbers of the color bar, from the top
};

// A value as the color bar writes it.
std::string heat_value_text(float value, HeatMapRange range);

// Checks the map and the options, and places everything.
Result<HeatMapLayout> lay_out_heat_map(const HeatMap& map, const HeatMapOptions& options);

// The whole way: layout, pixels, PNG bytes.
Result<std::vector<std::byte>> draw_heat_map(const HeatMap& map, const HeatMapOptions& options);

// Writes bytes to a file, replacing its content; the error names the path and the system's reason.
Status save_heat_map(const std::string& path, const std::vector<std::byte>& bytes);

}  // namespace vkformer
