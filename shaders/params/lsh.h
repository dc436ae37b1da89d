// Push constants of the Reformer's kernels: lsh_hash, lsh_sort, chunk_attention, mix_rounds.
#ifndef VKFORMER_PARAMS_LSH_H
#define VKFORMER_PARAMS_LSH_H
#include "constants.h"
#include "attention.h"

// Factors that a number of buckets may be split into.
#define VKF_MAX_BUCKET_FACTORS 4
// lsh_sort's digits: 4 bits, so that the counters of 128 invocations take 8 KiB.
#define VKF_SORT_DIGITS 16

struct LshHashParams {
  HeadLayout x;    // (B, H, S, E)
  uint_t heads;    // H
  uint_t tokens;   // S
  uint_t rounds;   // R
  uint_t columns;  // of a rotation: half the sum of the factors
  uint_t stride;   // from a round's first bucket to the next round's
  uint_t factor_count;
  uint_t factors[VKF_MAX_BUCKET_FACTORS];  // even; their product is the number of buckets
  uint_t units;                            // B * H * R
};

struct LshSortParams {
  uint_t tokens;  // S
  uint_t rounds;  // R
  uint_t stride;  // from a round's first bucket to the next round's
  uint_t shift;   // bits below this pass's digit
  uint_t units;   // B * H * R
};

struct ChunkAttentionParams {
  HeadLayout q;   // (B, H, S, E)
  HeadLayout k;   // (B, H, S, E)
  HeadLayout v;   // (B, H, S, Ev)
  HeadLayout y;   // (B, H, R * S, Ev), and two more columns where there are several rounds
  uint_t batch;   // B
  uint_t heads;   // H
  uint_t tokens;  // S
  uint_t rounds;  // R
  uint_t chunk;   // tokens of a chunk, a divisor of S
  uint_t before;  // chunks before the query's own that it sees
  uint_t after;   // and after it
  uint_t causal;  // 1: only keys at or before the query's position
  float_t scale;  // of q.k
};

struct MixRoundsParams {
  uint_t heads;   // H
  uint_t tokens;  // S
  uint_t rounds;  // R
  uint_t width;   // Ev
  uint_t rows;    // B * S * H
};
#ifdef __cplusplus
static_assert(sizeof(LshHashParams) == 60);
static_assert(sizeof(LshSortParams) == 20);
static_assert(sizeof(ChunkAttentionParams) == 100);
static_assert(sizeof(MixRoundsParams) == 20);
#endif

// Specialization constants (constants.h).
#define VKF_LSH_HASH_CONSTANTS(constant)                                         \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */ \
      constant(2, kHasMask, has_mask, 0)
VKF_CONSTANTS_STRUCT(LshHashConstants, VKF_LSH_HASH_CONSTANTS)

#define VKF_LSH_SORT_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 128) constant(1, kFirstPass, first_pass, 1)
VKF_CONSTANTS_STRUCT(LshSortConstants, VKF_LSH_SORT_CONSTANTS)

#define VKF_CHUNK_ATTENTION_CONSTANTS(constant)                                              \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */             \
      constant(2, kValueWidth, value_width, 64)                          /* Ev */            \
      constant(3, kHasOrder, has_order, 0) /* 0: tokens stand as they are */                 \
      constant(4, kHasMask, has_mask, 0)                                                     \
          constant(5, kShared, shared, 0) /* 1: keys are queries scaled to length 1 (LSH) */ \
      constant(6, kStats, stats, 0)       /* 1: rows end with highest score and weight */
VKF_CONSTANTS_STRUCT(ChunkAttentionConstants, VKF_CHUNK_ATTENTION_CONSTANTS)

#define VKF_CHUNK_ATTENTION_BLOCKS_CONSTANTS(constant)                                       \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */             \
      constant(2, kValueWidth, value_width, 64)                          /* Ev */            \
      constant(3, kTileM, tile_m, 4)            /* queries of an invocation */               \
      constant(4, kStageDepth, stage_depth, 16) /* fours of E in shared memory at a time */  \
      constant(5, kStageKeys, stage_keys, 32)   /* values likewise */                        \
      constant(6, kQuads, quads, 0)             /* 1: load four elements at a time */        \
      constant(7, kHasOrder, has_order, 0)      /* 0: tokens stand as they are */            \
      constant(8, kHasMask, has_mask, 0)                                                     \
          constant(9, kShared, shared, 0) /* 1: keys are queries scaled to length 1 (LSH) */ \
      constant(10, kStats, stats, 0)      /* 1: rows end with highest score and weight */
VKF_CONSTANTS_STRUCT(ChunkAttentionBlocksConstants, VKF_CHUNK_ATTENTION_BLOCKS_CONSTANTS)
#endif
