// Push constants of select_rows.
#ifndef VKFORMER_PARAMS_SELECT_ROWS_H
#define VKFORMER_PARAMS_SELECT_ROWS_H
#include "constants.h"
#include "types.h"

struct SelectRowsParams {
  uint_t items;  // B
  uint_t rows;   // S, of each item
  uint_t width;  // C
  uint_t best;   // K
};
#ifdef __cplusplus
static_assert(sizeof(SelectRowsParams) == 16);
// Elements of x, so that their indices stay below what 32 bits hold.
inline constexpr int64_t kMostSelected = int64_t{1} << 31;
#endif
#endif
