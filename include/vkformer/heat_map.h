// Heat maps: draws an attention matrix as a labelled PNG picture.
//
// Threading: plain functions without shared state; call them from any thread.
// Lifetime: nothing is kept after a call. Nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vkformer/export.h"
#include "vkformer/result.h"

namespace vkformer {

// One attention matrix with the names of its rows and columns.
struct HeatMap {
  // Attention weights, row-major; rows are queries. A NaN or an infinity is drawn as a red hatch.
  // (T, S)
  std::vector<float> values;
  // T, the number of query tokens.
  int rows = 0;
  // S, the number of key tokens.
  int columns = 0;
  // One UTF-8 label for each row, top to bottom, or empty for row numbers from 0.
  std::vector<std::string> row_labels;
  // One UTF-8 label for each column, left to right, or empty for column numbers from 0.
  std::vector<std::string> column_labels;
  // One line above the picture; empty for none.
  std::string title;
};

// Which values get the lightest and the darkest color. Values outside are drawn as the nearer end,
// and the color bar then says "<=" or ">=".
enum class HeatMapRange : uint8_t {
  kZeroToOne,  // white is 0, dark blue is 1: pictures can be compared with each other
  kZeroToMax,  // white is 0, dark blue is the largest value: shows faint patterns
};

struct HeatMapOptions {
  // Side of one square cell in pixels; 0 chooses one that makes the picture about 600 to 1600 wide.
  int cell_size = 0;
  // The values at the ends of the color bar; 0 and 1 unless asked otherwise.
  HeatMapRange range = HeatMapRange::kZeroToOne;
  // What the rows are, written along the left side.
  std::string row_axis = "generated";
  // What the columns are, written along the top.
  std::string column_axis = "source";
};

// Draws the map and returns the bytes of an 8-bit RGB PNG file. Characters outside printable ASCII
// appear escaped, as <U+00E9>; a long label ends in "...". A picture is at most 65,536 pixels a
// side and 67,108,864 pixels in all.
VKFORMER_API Result<std::vector<std::byte>> render_heat_map_png(const HeatMap& map,
                                                                const HeatMapOptions& options = {});

// Draws the map into a PNG file; an existing file is overwritten.
VKFORMER_API Status write_heat_map_png(const std::string& path, const HeatMap& map,
                                       const HeatMapOptions& options = {});

}  // namespace vkformer
