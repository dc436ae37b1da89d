// Push constants of causal_conv.
#ifndef VKFORMER_PARAMS_CAUSAL_CONV_H
#define VKFORMER_PARAMS_CAUSAL_CONV_H
#include "constants.h"
#include "types.h"

struct CausalConvParams {
  uint_t rows;       // B T, of a full pass and a prompt
  uint_t tokens;     // T
  uint_t width;      // W, elements of a row of X
  uint_t out_width;  // elements of a row of Y
  uint_t channels;   // C
  uint_t first;      // column of X of the first channel
  uint_t to;         // column of Y of the first channel
  uint_t in_gate;    // column of X of the first channel's gate of inputs, where kGated
  uint_t out_gate;   // the same of outputs
  uint_t block;      // columns of Y that a workgroup takes
  uint_t lines;      // L of States (R, L, K - 1, C)
  uint_t beams;      // rows of an item
};
#ifdef __cplusplus
static_assert(sizeof(CausalConvParams) == 48);
#endif

// Specialization constants (constants.h).
#define VKF_CAUSAL_CONV_CONSTANTS(constant)                                   \
  constant(0, kLocalSize, local_size, 64) constant(1, kTaps, taps, 4) /* K */ \
      constant(2, kActivation, activation, 0)                                 \
          constant(3, kGated, gated, 0) /* 1: gates of inputs and outputs */  \
      constant(4, kHasMask, has_mask, 0) constant(5, kHasBias, has_bias, 0)
VKF_CONSTANTS_STRUCT(CausalConvConstants, VKF_CAUSAL_CONV_CONSTANTS)
#endif
