// Push constants of layer_norm and rms_norm.
#ifndef VKFORMER_PARAMS_NORM_H
#define VKFORMER_PARAMS_NORM_H
#include "constants.h"
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

// Specialization constants (constants.h).
#define VKF_LAYER_NORM_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kHasResidual, has_residual, 0)
VKF_CONSTANTS_STRUCT(LayerNormConstants, VKF_LAYER_NORM_CONSTANTS)
#endif
