// Push constants of inverse_spline.
#ifndef VKFORMER_PARAMS_SPLINE_H
#define VKFORMER_PARAMS_SPLINE_H
#include "constants.h"
#include "types.h"

// Of widths, heights and derivatives, the least.
#define VKF_SPLINE_LEAST 1e-3f

struct SplineParams {
  uint_t count;  // elements
  uint_t bins;   // K
  float bound;   // b
};
#ifdef __cplusplus
static_assert(sizeof(SplineParams) == 12);
#endif
#endif
