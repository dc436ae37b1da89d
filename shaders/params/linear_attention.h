// Push constants of the linear_attention kernels, which sequence_projection shares.
//
// A *unit* is a head of a batch item (item * H + head). A launch takes the units first_unit ... in
// separate scratch memory, where they count from 0 ("local"). M: features of a row of q or k, with
// the constant one after them where there is one (has_one).
#ifndef VKFORMER_PARAMS_LINEAR_ATTENTION_H
#define VKFORMER_PARAMS_LINEAR_ATTENTION_H
#include "constants.h"
#include "attention.h"

#define VKF_MAP_ELU 0u    // elu(x) + 1
#define VKF_MAP_FAVOR 1u  // FAVOR+: positive random features

// _features: X -> rows of features. Of a query M values; of a key M values, then the row's peak.
struct LinearFeaturesParams {
  HeadLayout q;  // (B, H, T, E)
  HeadLayout k;  // (B, H, S, E)
  HeadLayout v;  // (B, H, S, Ev); copied in a step only
  uint_t heads;  // H
  uint_t first_unit;
  uint_t units;
  uint_t queries;      // T
  uint_t keys;         // S
  uint_t features;     // m, without the constant one
  uint_t value_width;  // Ev
  uint_t k_offset;     // of the keys' features, in elements
  uint_t v_offset;     // of the copied values, in elements
  float_t scale;       // of x, FAVOR+ only: E^(-1/4)
  float_t kernel_eps;  // FAVOR+ only
};

// _state: per unit and chunk of keys, the sum over its keys j of f_j [v_j | 1].
// A state is (M, Ev + 1), then its peak twice; _scan replaces the second by that of all chunks up
// to it.
struct LinearStateParams {
  HeadLayout v;          // (B, H, S, Ev)
  uint_t f_offset;       // of the features, in elements
  uint_t f_unit_stride;  // by local unit
  uint_t f_head_stride;  // by head
  uint_t f_token_stride;
  uint_t f_feature_stride;
  uint_t heads;  // H
  uint_t first_unit;
  uint_t units;
  uint_t keys;   // S
  uint_t chunk;  // keys of a chunk
  uint_t chunks;
  uint_t features;    // M
  uint_t out_offset;  // of the first unit's states, in elements
};

// _scan: sums over the chunks, before each (causal) and in all.
struct LinearScanParams {
  uint_t heads;  // H
  uint_t first_unit;
  uint_t units;
  uint_t chunks;
  uint_t fading;        // words of a state that fade with its peak; the others are sums of ones
  uint_t state_words;   // M * (Ev + 1) + 2
  uint_t total_offset;  // where totals lie, in elements: by batch item, by head, by copy
  uint_t total_item_stride;
  uint_t total_head_stride;
  uint_t total_copy_stride;
  uint_t copies;
};

// _output: y of every query.
struct LinearOutputParams {
  HeadLayout v;  // (B, H, S, Ev)
  HeadLayout y;  // (B, H, T, Ev)
  uint_t heads;  // H
  uint_t first_unit;
  uint_t units;
  uint_t queries;       // T
  uint_t keys;          // S
  uint_t chunk;         // keys of a chunk
  uint_t chunks;        // states of a unit
  uint_t state_offset;  // of the first unit's states, in elements
  uint_t features;      // M
  uint_t k_offset;      // of the keys' features, in elements
  float_t epsilon;      // added to the denominator
};

// _weights: the normalized weights of chosen heads.
struct LinearWeightsParams {
  uint_t heads;  // H
  uint_t first_unit;
  uint_t units;
  uint_t first_head;   // chosen heads
  uint_t heads_out;    // Hsel
  uint_t queries;      // T
  uint_t keys;         // S
  uint_t features;     // M
  uint_t k_offset;     // of the keys' features, in elements
  uint_t state_words;  // from one unit's total to the next
  float_t epsilon;     // added to the denominator
};

// _step: one token of every live slot.
struct LinearStepParams {
  uint_t heads;        // H
  uint_t features;     // M
  uint_t value_width;  // Ev
  uint_t k_offset;     // of the keys' features, in elements
  uint_t v_offset;     // of the copied values, in elements
  uint_t lines;        // C, positions that the ancestry has room for
  uint_t beams;        // rows of an item
  float_t epsilon;     // added to the denominator
};
#ifdef __cplusplus
static_assert(sizeof(LinearFeaturesParams) == 92);
static_assert(sizeof(LinearStateParams) == 68);
static_assert(sizeof(LinearScanParams) == 44);
static_assert(sizeof(LinearOutputParams) == 76);
static_assert(sizeof(LinearWeightsParams) == 44);
static_assert(sizeof(LinearStepParams) == 32);
#endif

// Specialization constants (constants.h).
#define VKF_LINEAR_FEATURES_CONSTANTS(constant)                                                \
  constant(0, kLocalSize, local_size, 64) constant(1, kRows, rows, 8)                          \
      constant(2, kWidth, width, 64)   /* E */                                                 \
      constant(3, kMap, map, 0)        /* VKF_MAP_* */                                         \
      constant(4, kHasOne, has_one, 0) /* 1: a constant feature carries kernel_eps */          \
      constant(5, kHasMask, has_mask, 0) constant(6, kStep, step, 0) /* 1: one token a slot */ \
      constant(7, kSpread, spread, 1) /* features that an invocation takes at once */
VKF_CONSTANTS_STRUCT(LinearFeaturesConstants, VKF_LINEAR_FEATURES_CONSTANTS)

#define VKF_LINEAR_STATE_CONSTANTS(constant)                                                \
  constant(0, kLocalSize, local_size, 64) constant(1, kFeatures, features, 16)              \
      constant(2, kValueWidth, value_width, 64) /* Ev */                                    \
      constant(3, kFades, fades, 0)    /* 1: features are exponents, and keys have peaks */ \
      constant(4, kHasOne, has_one, 0) /* 1: the last feature is the constant one */        \
      constant(5, kHasMask, has_mask, 0) constant(                                          \
          6, kDirect, direct, 0) /* 1: no tile; a software device reads F once for all lanes */
VKF_CONSTANTS_STRUCT(LinearStateConstants, VKF_LINEAR_STATE_CONSTANTS)

#define VKF_LINEAR_SCAN_CONSTANTS(constant)                                        \
  constant(0, kLocalSize, local_size, 64) constant(1, kCausal, causal, 0)          \
      constant(2, kFades, fades, 0)    /* 1: states are relative to their peaks */ \
      constant(3, kHasOne, has_one, 0) /* 1: the peak is that of all keys, later ones too */
VKF_CONSTANTS_STRUCT(LinearScanConstants, VKF_LINEAR_SCAN_CONSTANTS)

#define VKF_LINEAR_OUTPUT_CONSTANTS(constant)                                         \
  constant(0, kLocalSize, local_size, 64) constant(1, kRows, rows, 8)                 \
      constant(2, kValueWidth, value_width, 64) /* Ev */                              \
      constant(3, kCausal, causal, 0)                                                 \
          constant(4, kFades, fades, 0) /* 1: keys' features are exponents */         \
      constant(5, kHasOne, has_one, 0)  /* 1: the last feature is the constant one */ \
      constant(6, kDirect, direct,                                                    \
               0) /* 1: no query tile; a software device reads F once for all lanes */
VKF_CONSTANTS_STRUCT(LinearOutputConstants, VKF_LINEAR_OUTPUT_CONSTANTS)

#define VKF_LINEAR_WEIGHTS_CONSTANTS(constant)                               \
  constant(0, kLocalSize, local_size, 64) constant(1, kCausal, causal, 0)    \
      constant(2, kFades, fades, 0)    /* 1: keys' features are exponents */ \
      constant(3, kHasOne, has_one, 0) /* 1: the last feature is the constant one */
VKF_CONSTANTS_STRUCT(LinearWeightsConstants, VKF_LINEAR_WEIGHTS_CONSTANTS)

#define VKF_LINEAR_STEP_CONSTANTS(constant)                                  \
  constant(0, kLocalSize, local_size, 64)                                    \
      constant(1, kFades, fades, 0)    /* 1: keys' features are exponents */ \
      constant(2, kHasOne, has_one, 0) /* 1: the last feature is the constant one */
VKF_CONSTANTS_STRUCT(LinearStepConstants, VKF_LINEAR_STEP_CONSTANTS)
#endif
