// Push constants of expand_keys.
#ifndef VKFORMER_PARAMS_EXPAND_KEYS_H
#define VKFORMER_PARAMS_EXPAND_KEYS_H
#include "types.h"

struct ExpandKeysParams {
  uint_t rows;           // R
  uint_t heads;          // H
  uint_t joint;          // columns of a key that all heads share
  uint_t own;            // columns of a key that are the head's
  uint_t value_width;    // Ev
  uint_t q_width;        // H (shared + own)
  uint_t width;          // of a row of Y
  uint_t shared_stride;  // columns of a row of Shared, of which the first are read
};
#ifdef __cplusplus
static_assert(sizeof(ExpandKeysParams) == 32);
#endif
#endif
