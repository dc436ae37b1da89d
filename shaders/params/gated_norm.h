// Push constants of gated_norm.
#ifndef VKFORMER_PARAMS_GATED_NORM_H
#define VKFORMER_PARAMS_GATED_NORM_H
#include "constants.h"
#include "types.h"

#define VKF_GATE_ONLY 0u
#define VKF_GATE_THEN_NORM 1u
#define VKF_NORM_THEN_GATE 2u

struct GatedNormParams {
  uint_t rows;        // R
  uint_t width;       // G E, elements of a row of X
  uint_t group;       // E, elements that are normed together
  uint_t gate_width;  // elements of a row of Z
  uint_t gate_first;  // column of Z of the first gate
  float_t epsilon;    // added to the mean square
};
#ifdef __cplusplus
static_assert(sizeof(GatedNormParams) == 24);
#endif

// Specialization constants (constants.h).
#define VKF_GATED_NORM_CONSTANTS(constant)                                   \
  constant(0, kLocalSize, local_size, 64)                                    \
      constant(1, kOrder, order, 0)           /* VKF_GATE_* or VKF_NORM_* */ \
      constant(2, kActivation, activation, 0) /* of the gates */
VKF_CONSTANTS_STRUCT(GatedNormConstants, VKF_GATED_NORM_CONSTANTS)
#endif
