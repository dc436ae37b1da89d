// Push constants of fill.
#ifndef VKFORMER_PARAMS_FILL_H
#define VKFORMER_PARAMS_FILL_H
#include "types.h"

struct FillParams {
  uint_t count;  // words
  uint_t value;
};
#ifdef __cplusplus
static_assert(sizeof(FillParams) == 8);
#endif
#endif
