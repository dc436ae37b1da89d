// Push constants of roofline_fma.
#ifndef VKFORMER_PARAMS_ROOFLINE_H
#define VKFORMER_PARAMS_ROOFLINE_H
#include "types.h"

// Multiply-adds of every component in one iteration of roofline_fma's loop.
#define VKF_ROOFLINE_STEPS 32

struct RooflineFmaParams {
  uint_t iterations;
  float_t scale;  // below 1, so that sums stay finite
  float_t shift;
  float_t absent;  // a sum that never comes out
};
#ifdef __cplusplus
static_assert(sizeof(RooflineFmaParams) == 16);
#endif
#endif
