// Push constants of mixtures of experts: the choice of experts, their order, their products and
// sums.
#ifndef VKFORMER_PARAMS_EXPERTS_H
#define VKFORMER_PARAMS_EXPERTS_H
#include "constants.h"
#include "types.h"
#ifdef __cplusplus
inline constexpr uint32_t kMostExperts = 1024;
inline constexpr uint32_t kMostChoices = 64;
inline constexpr uint32_t kMostExpertGroups = 64;
inline constexpr uint32_t kMostExpertTileRows = 32;  // in a workgroup of expert_tiled
#else
const uint kMostExperts = 1024u;
const uint kMostChoices = 64u;
const uint kMostExpertGroups = 64u;
#endif

// expert_route. A row of logits has X + A columns, a row of routes K + A entries of two words.
struct ExpertRouteParams {
  uint_t rows;         // R
  uint_t experts;      // X
  uint_t choices;      // K
  uint_t always;       // A, experts that every row takes
  uint_t groups;       // of X / groups experts each; 1: none
  uint_t kept_groups;  // whose experts can be chosen
  float_t scale;       // multiplies the weights of the chosen
  float_t least_sum;   // added to the sum that they are divided by
};

// expert_order: what `pairs` choices of rows from `first_row` on say.
struct ExpertOrderParams {
  uint_t pairs;      // rows * K
  uint_t choices;    // K
  uint_t entries;    // K + A of a row of routes
  uint_t first_row;  // of the routes
  uint_t experts;    // X
  uint_t order;      // where the order begins, in words after the tiles
  uint_t tile_bits;  // tiles have 1 << tile_bits rows
  uint_t unused;
};

// The products of experts, after MatmulParams, of which n and k are one expert's.
struct ExpertParams {
  uint_t entries;       // of a row of routes (expert_rows)
  uint_t panels;        // of 64 columns of one expert
  uint_t first_panel;   // of all experts' panels, the first that the binding holds
  uint_t held_panels;   // that it holds
  uint_t first_column;  // of an expert: a multiple of 64
  uint_t share;         // choices that read the same row of A (expert_tiled)
  uint_t order;         // where the order begins, in words (expert_tiled)
  float_t gate_limit;   // 0: none; else gates end there, and y = act(gate) (1 + the other)
};

// expert_sum: y = scale * sum of w z over `count` of a row's entries from `first` on + residual.
struct ExpertSumParams {
  uint_t rows;
  uint_t width;      // D
  uint_t count;      // rows of Z that a row of Y sums
  uint_t first;      // entry of the first one
  uint_t entries;    // of a row of routes
  uint_t route_row;  // the routes' row of row 0
  float_t scale;
  uint_t unused;
};
#ifdef __cplusplus
static_assert(sizeof(ExpertRouteParams) == 32);
static_assert(sizeof(ExpertOrderParams) == 32);
static_assert(sizeof(ExpertParams) == 32);
static_assert(sizeof(ExpertSumParams) == 32);
#endif

// Specialization constants (constants.h).
#define VKF_EXPERT_ROUTE_CONSTANTS(constant)                                       \
  constant(0, kLocalSize, local_size, 64)                                          \
      constant(1, kSigmoid, sigmoid, 0) /* 1: scores are sigmoids, 0: a softmax */ \
      constant(2, kBiased, biased, 0)   /* 1: a bias takes part in the choice */   \
      constant(3, kNormalize, normalize,                                           \
               1) /* 1: weights of the chosen are divided by their sum */
VKF_CONSTANTS_STRUCT(ExpertRouteConstants, VKF_EXPERT_ROUTE_CONSTANTS)

#define VKF_EXPERT_SUM_CONSTANTS(constant)                                \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 512) \
      constant(2, kHasResidual, has_residual, 0)
VKF_CONSTANTS_STRUCT(ExpertSumConstants, VKF_EXPERT_SUM_CONSTANTS)
#endif
