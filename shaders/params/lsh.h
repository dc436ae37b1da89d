// Push constants of the Reformer's kernels: lsh_hash, lsh_sort, chunk_attention, mix_rounds.
#ifndef VKFORMER_PARAMS_LSH_H
#define VKFORMER_PARAMS_LSH_H
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
  uint_t units;    // B * H * R
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
#endif
