// Push constants of grid_distances.
#ifndef VKFORMER_PARAMS_GRID_DISTANCES_H
#define VKFORMER_PARAMS_GRID_DISTANCES_H
#include "constants.h"
#include "types.h"

struct GridDistancesParams {
  uint_t rows;  // B * T
  uint_t heads;
  uint_t head_width;  // E
  uint_t height;      // H, tokens
  uint_t width;       // W, tokens
  uint_t columns;     // of a row of y
  float_t scale;
  uint_t unused;
};
#ifdef __cplusplus
static_assert(sizeof(GridDistancesParams) == 32);
#endif
#endif
