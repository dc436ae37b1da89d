// Push constants of head_norm.
#ifndef VKFORMER_PARAMS_HEAD_NORM_H
#define VKFORMER_PARAMS_HEAD_NORM_H
#include "constants.h"
#include "types.h"

struct HeadNormParams {
  uint_t rows;        // R
  uint_t width;       // W, elements of a row
  uint_t first;       // first column that is normalized
  uint_t heads;       // G, heads that are normalized
  uint_t head_width;  // E
  float_t epsilon;    // added to the mean square or the variance
};
#ifdef __cplusplus
static_assert(sizeof(HeadNormParams) == 24);
#endif

// Specialization constants (constants.h).
#define VKF_HEAD_NORM_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kCentered, centered, 0)
VKF_CONSTANTS_STRUCT(HeadNormConstants, VKF_HEAD_NORM_CONSTANTS)
#endif
