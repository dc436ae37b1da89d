// Push constants of softmax.
#ifndef VKFORMER_PARAMS_SOFTMAX_H
#define VKFORMER_PARAMS_SOFTMAX_H
#include "score_terms.h"

struct SoftmaxParams {
  uint_t rows;     // B * H * T
  uint_t heads;    // H
  uint_t queries;  // T
  uint_t keys;     // S
  float_t inverse_temperature;  // multiplies x, not the bias
  uint_t unused[2];
  ScoreTermsParams terms;
};
#ifdef __cplusplus
static_assert(sizeof(SoftmaxParams) == 64);
#endif
#endif
