// Push constants of group_norm.
#ifndef VKFORMER_PARAMS_GROUP_NORM_H
#define VKFORMER_PARAMS_GROUP_NORM_H
#include "constants.h"
#include "types.h"

// A group is `outer` runs of `inner` neighboring elements.
struct GroupNormParams {
  uint_t rows;            // B * groups
  uint_t groups;          // of a batch entry
  uint_t channels;        // C
  uint_t group_channels;  // C / groups
  uint_t inner;           // elements
  uint_t outer;           // runs
  uint_t outer_stride;    // elements
  uint_t group_stride;    // elements
  uint_t batch_stride;    // elements
  // From an element to the one kLocalSize further, as digits (run, element of the run).
  uint_t step_outer;
  uint_t step_inner;
  float_t epsilon;  // added to the variance
};
#ifdef __cplusplus
static_assert(sizeof(GroupNormParams) == 48);
#endif

// Specialization constants (constants.h).
#define VKF_GROUP_NORM_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kChannelsLast, channels_last, 0)
VKF_CONSTANTS_STRUCT(GroupNormConstants, VKF_GROUP_NORM_CONSTANTS)
#endif
