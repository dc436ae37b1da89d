// Push constants of roofline_fma and roofline_units.
#ifndef VKFORMER_PARAMS_ROOFLINE_H
#define VKFORMER_PARAMS_ROOFLINE_H
#include "constants.h"
#include "types.h"

// Multiply-adds of every component in one iteration of roofline_fma's loop.
#define VKF_ROOFLINE_STEPS 32

struct RooflineFmaParams {
  uint_t iterations;
  float_t scale;  // below 1, so that sums stay finite
  float_t shift;
  float_t absent;  // -1: a sum that never comes out, and what turns a factor's sign
};
#ifdef __cplusplus
static_assert(sizeof(RooflineFmaParams) == 16);
#endif

// Specialization constants (constants.h).
#define VKF_ROOFLINE_UNITS_CONSTANTS(constant)                             \
  constant(0, kLocalSize, local_size, 128) constant(1, kUnitM, unit_m, 16) \
      constant(2, kUnitN, unit_n, 16) constant(3, kUnitK, unit_k, 16)
VKF_CONSTANTS_STRUCT(RooflineUnitsConstants, VKF_ROOFLINE_UNITS_CONSTANTS)
#endif
