// Push constants of resize_grid.
#ifndef VKFORMER_PARAMS_RESIZE_GRID_H
#define VKFORMER_PARAMS_RESIZE_GRID_H
#include "types.h"

// The source of place i along a side is (i * factor + shift) / divisor, at least 0: whole numbers,
// so that no rounding moves it.
struct ResizeGridParams {
  uint_t rows;        // B * OH * OW
  uint_t channels;    // C
  uint_t height;      // H, tokens
  uint_t width;       // W, tokens
  uint_t out_height;  // OH, tokens
  uint_t out_width;   // OW, tokens
  uint_t factor_y;
  uint_t factor_x;
  uint_t divisor_y;
  uint_t divisor_x;
  int_t shift_y;
  int_t shift_x;
};
#ifdef __cplusplus
static_assert(sizeof(ResizeGridParams) == 48);
#endif
#endif
