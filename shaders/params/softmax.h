// Push constants of softmax.
#ifndef VKFORMER_PARAMS_SOFTMAX_H
#define VKFORMER_PARAMS_SOFTMAX_H
#include "constants.h"
#include "score_terms.h"

struct SoftmaxParams {
  uint_t rows;                  // B * H * T
  uint_t heads;                 // H
  uint_t queries;               // T
  uint_t keys;                  // S
  float_t inverse_temperature;  // multiplies x, not the bias
  uint_t unused[2];
  ScoreTermsParams terms;
};
#ifdef __cplusplus
static_assert(sizeof(SoftmaxParams) == 64);
#endif

// Specialization constants (constants.h).
#define VKF_SOFTMAX_CONSTANTS(constant)                           \
  constant(0, kLocalSize, local_size, 64)                         \
      constant(1, kKinds, kinds, 0) /* VKF_KIND_* of the terms */ \
      constant(2, kHeld, held, 0)   /* keys of an invocation, kept in registers; 0: in Y */
VKF_CONSTANTS_STRUCT(SoftmaxConstants, VKF_SOFTMAX_CONSTANTS)
#endif
