// Push constants of deformable_attention.
#ifndef VKFORMER_PARAMS_DEFORMABLE_ATTENTION_H
#define VKFORMER_PARAMS_DEFORMABLE_ATTENTION_H
#include "constants.h"
#include "types.h"

#define VKF_MOST_DEFORMABLE_LEVELS 8
// Samples of a query that a workgroup holds.
#define VKF_MOST_DEFORMABLE_SAMPLES 1024

struct DeformableAttentionParams {
  uint_t rows;     // B * Q
  uint_t queries;  // Q
  uint_t tokens;   // S
  uint_t width;    // H * E
  uint_t heads;    // H
  uint_t levels;   // L
  uint_t points;   // P
  uint_t unused;
  // Rows and columns of each grid: height << 16 | width.
  uint_t sizes[VKF_MOST_DEFORMABLE_LEVELS];
};
#ifdef __cplusplus
static_assert(sizeof(DeformableAttentionParams) == 64);
#endif

// Specialization constants (constants.h).
#define VKF_DEFORMABLE_ATTENTION_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kSamples, samples, 96)
VKF_CONSTANTS_STRUCT(DeformableAttentionConstants, VKF_DEFORMABLE_ATTENTION_CONSTANTS)
#endif
