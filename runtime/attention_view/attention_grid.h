// All maps of one or more layers as one picture: where everything goes, then pixels, then PNG
// bytes. Needs: vkformer/attention_view.h for the maps that callers hand in.
#pragma once

#include <array>
#include <string>

#include "attention_view/canvas.h"
#include "vkformer/attention_view.h"

namespace vkformer {

// Places of everything. All lengths are pixels, x to the right, y downwards.
struct AttentionGridLayout {
  int64_t width = 0;
  int64_t height = 0;
  int64_t across = 0;  // maps side by side
  int64_t down = 0;    // maps above each other
  int64_t cell = 0;    // side of a cell
  int64_t map_w = 0;   // columns * cell
  int64_t map_h = 0;   // rows * cell
  int64_t map_x = 0;   // left edge of the first map
  int64_t map_y = 0;   // upper edge of the first map
  int64_t step_x = 0;  // from a map to the next one
  int64_t step_y = 0;
  int64_t bar_x = 0;  // the color bar
  int64_t bar_h = 0;
  float top = 1.0f;                  // value of the darkest color
  std::string title;                 // shortened to fit
  std::array<std::string, 2> ticks;  // numbers of the color bar, from the top
};

// Checks the maps and the options, and places everything.
Result<AttentionGridLayout> lay_out_attention_grid(const AttentionMaps& maps,
                                                   const AttentionGridOptions& options);

// The whole way: layout, pixels, PNG bytes.
Result<std::vector<std::byte>> draw_attention_grid(const AttentionMaps& maps,
                                                   const AttentionGridOptions& options);

}  // namespace vkformer
