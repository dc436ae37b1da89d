// Push constants of attention_merge.
#ifndef VKFORMER_PARAMS_ATTENTION_MERGE_H
#define VKFORMER_PARAMS_ATTENTION_MERGE_H
#include "constants.h"
#include "types.h"

struct AttentionMergeParams {
  uint_t heads;     // H
  uint_t y_stride;  // elements from one slot to the next
};
#ifdef __cplusplus
static_assert(sizeof(AttentionMergeParams) == 8);
#endif

// Specialization constants (constants.h).
#define VKF_ATTENTION_MERGE_CONSTANTS(constant)                                              \
  constant(0, kLocalSize, local_size, 64) constant(1, kValueWidth, value_width, 64) /* Ev */ \
      constant(2, kParts, parts, 1)                                                 /* P */
VKF_CONSTANTS_STRUCT(AttentionMergeConstants, VKF_ATTENTION_MERGE_CONSTANTS)
#endif
