// Push constants of the row-wise kernels that have no header of their own.
#ifndef VKFORMER_PARAMS_ROWWISE_H
#define VKFORMER_PARAMS_ROWWISE_H
#include "constants.h"
#include "types.h"

// log_softmax, argmax, row_entropy, top_k.
struct RowParams {
  uint_t rows;   // R
  uint_t width;  // elements of a row
  uint_t best;   // K of top_k, else 0
  uint_t unused;
};

// activation, gated_activation.
struct ElementParams {
  uint_t rows;
  uint_t width;  // output elements of a row
  uint_t count;  // output elements in all; the last row may be ragged
  uint_t unused;
};

struct MeanPoolParams {
  uint_t batch;      // B
  uint_t tokens;     // T
  uint_t width;      // D
  uint_t normalize;  // 1: divide by the Euclidean length
  uint_t span;       // columns of a workgroup; D where it normalizes
};
#ifdef __cplusplus
static_assert(sizeof(RowParams) == 16);
static_assert(sizeof(ElementParams) == 16);
static_assert(sizeof(MeanPoolParams) == 20);
#endif

// Specialization constants (constants.h).
#define VKF_ACTIVATION_CONSTANTS(constant)                            \
  constant(0, kLocalSize, local_size, 64) constant(1, kKind, kind, 0) \
      constant(2, kChunk, chunk, 512)
VKF_CONSTANTS_STRUCT(ActivationConstants, VKF_ACTIVATION_CONSTANTS)

#define VKF_GATED_ACTIVATION_CONSTANTS(constant)                                  \
  VKF_ACTIVATION_CONSTANTS(constant)                                              \
  constant(3, kPairs, pairs, 0) /* 1: gates are columns 2i, not the first half */ \
      constant(4, kUp, up, 0)   /* the activation of what gates multiply */
VKF_CONSTANTS_STRUCT(GatedActivationConstants, VKF_GATED_ACTIVATION_CONSTANTS)

// How mean_pool makes one vector of many.
#define VKF_POOL_MEAN 0u
#define VKF_POOL_MAX 1u
#define VKF_POOL_LAST 2u
#define VKF_POOL_WEIGHTED_MEAN 3u
#define VKF_POOL_MEAN_SQRT_LENGTH 4u

#define VKF_MEAN_POOL_CONSTANTS(constant)                                       \
  constant(0, kLocalSize, local_size, 64) constant(1, kHasMask, has_mask, 0)    \
      constant(2, kColumns, columns, 1) /* that an invocation sums at a time */ \
      constant(3, kKind, kind, 0)       /* VKF_POOL_* */
VKF_CONSTANTS_STRUCT(MeanPoolConstants, VKF_MEAN_POOL_CONSTANTS)
#endif
