// Push constants of layer_norm and rms_norm.
#ifndef VKFORMER_PARAMS_NORM_H
#define VKFORMER_PARAMS_NORM_H
#include "types.h"

struct NormParams {
  uint_t rows;
  uint_t width;     // D
  float_t epsilon;  // added to the variance (layer_norm) or mean square (rms_norm)
  uint_t unused;
};
#ifdef __cplusplus
static_assert(sizeof(NormParams) == 16);
#endif
#endif
