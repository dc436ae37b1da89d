// Push constants of scale_ranks.
#ifndef VKFORMER_PARAMS_SCALE_RANKS_H
#define VKFORMER_PARAMS_SCALE_RANKS_H
#include "constants.h"
#include "types.h"

struct ScaleRanksParams {
  uint_t rows;
  uint_t width;     // J, ranks of all adapters
  uint_t adapters;  // A
  uint_t per_item;  // rows of an item, unless rows are slots
  uint_t beams;     // rows of the scales that an item has
  uint_t unused[3];
};
#ifdef __cplusplus
static_assert(sizeof(ScaleRanksParams) == 32);
#endif
#endif
