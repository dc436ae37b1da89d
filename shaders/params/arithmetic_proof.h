// Push constants of arithmetic_proof.
#ifndef VKFORMER_PARAMS_ARITHMETIC_PROOF_H
#define VKFORMER_PARAMS_ARITHMETIC_PROOF_H
#include "types.h"

// Results of an item.
#define VKF_PROVEN_WORDS 16

struct ArithmeticProofParams {
  uint_t count;  // items
};
#endif
