// Push constants of the attention kernels.
#ifndef VKFORMER_PARAMS_ATTENTION_H
#define VKFORMER_PARAMS_ATTENTION_H
#include "constants.h"
#include "score_terms.h"

// Where element (b, h, t, e) of an operand lies in its binding, in elements:
// offset + b * batch_stride + h * head_stride + t * row_stride + e.
struct HeadLayout {
  uint_t offset;
  uint_t batch_stride;
  uint_t head_stride;
  uint_t row_stride;
};

// The layout of an operand that begins its binding.
struct HeadStrides {
  uint_t batch_stride;
  uint_t head_stride;
  uint_t row_stride;
};

// Relative positions (Shaw et al. 2018; Dai et al. 2019; He et al. 2021) lie in the binding of k
// and v, from element `offset` on; d(i, j) = clamp(j - i - causal_offset, -R, R) + R:
//   rows r (2R + 1, Hr, E), Hr = H or 1: q_i . r_d is added to q_i . k_j
//   with VKF_RELATIVE_QUERIES rows u (2R + 1, Hr, E): k_j . u_d is added, too
//   with VKF_RELATIVE_BIASES a (H, E), then c (H, E): (q_i + a) . k_j + (q_i + c) . r_d
//   with VKF_RELATIVE_VALUES rows w (2R + 1, Hr, Ev): w_d is added to v_j
//   with VKF_RELATIVE_PRODUCTS, which values exclude, s (B, H, S, 2R + 1): s_jd is added
struct RelativeParams {
  uint_t offset;  // elements
  uint_t reach;   // R, in tokens
};

// What there is of them, as a specialization constant; 0: none.
#define VKF_RELATIVE_KEYS 1u
#define VKF_RELATIVE_ONE_HEAD 2u
#define VKF_RELATIVE_BIASES 4u
#define VKF_RELATIVE_VALUES 8u
#define VKF_RELATIVE_QUERIES 16u
#define VKF_RELATIVE_PRODUCTS 32u

struct AttentionParams {
  HeadLayout q;   // (B, H, T, E)
  HeadLayout k;   // (B, Hkv, S, E); k and v lie in one binding
  HeadLayout v;   // (B, Hkv, S, Ev)
  HeadStrides y;  // (B, H, T, Ev)
  RelativeParams relative;
  uint_t heads;                 // H, and above its 16 bits H / Hkv
  uint_t queries;               // T
  uint_t keys;                  // S
  float_t scale;                // of q.k
  float_t inverse_temperature;  // of the whole score, applied after the row's maximum is taken off
  ScoreTermsParams terms;
  uint_t batch;  // B
};
#define VKF_HEADS(packed) ((packed)&0xffffu)
#define VKF_HEADS_PER_KV(packed) ((packed) >> 16u)

// attention_weights: the probabilities of heads first_head ... first_head + heads_out - 1.
struct AttentionWeightsParams {
  HeadLayout q;             // (B, H, T, E)
  HeadLayout k;             // (B, Hkv, S, E)
  RelativeParams relative;  // in k's binding
  uint_t heads;             // H
  uint_t heads_per_kv;      // H / Hkv
  uint_t first_head;
  uint_t heads_out;             // Hsel
  uint_t queries;               // T
  uint_t keys;                  // S
  uint_t rows;                  // B * Hsel * T
  float_t scale;                // of q.k
  float_t inverse_temperature;  // of the whole score
  uint_t raw_scores;            // 1: scores, -inf where masked; 0: probabilities
  ScoreTermsParams terms;
};

// attention_decode: one query a slot, keys and values in a cache (R, lines, Hkv * (E + Ev)) or, for
// cross-attention, (B, S, Hkv * (E + Ev)). A line holds the keys of all heads, then the values. A
// cache may have fewer lines than positions. Then position t has line t for t < sinks, and from
// there on line sinks + (t - sinks) % (lines - sinks).
struct AttentionDecodeParams {
  uint_t heads;               // H
  uint_t heads_per_kv;        // H / Hkv
  uint_t q_offset;            // elements
  uint_t q_stride;            // elements from one slot to the next
  uint_t y_stride;            // elements from one slot to the next
  uint_t line;                // elements, of a packed cache words, from one key to the next
  uint_t value_offset;        // of the values in a line, in elements; Hkv * E, or
                              // a column of the one key head that values are part of
  uint_t lines;               // keys that a row or item has room for: at most C, or S
  uint_t beams;               // rows of a batch item
  uint_t has_aux;             // 1: aux holds the ancestry, or for cross-attention the key mask
  float_t scale;              // of q.k
  uint_t window;              // keys that a query sees, its own the last; 0: all
  uint_t slopes_offset;       // words in aux; (H) floats: ALiBi slopes; or VKF_NO_TERM
  uint_t distance_offset;     // words in aux; a reach R, then (H, 2R + 1) floats; or VKF_NO_TERM
  uint_t positions;           // C, positions of a row: the width of the ancestry
  uint_t context;             // N, keys that a query sees at most; 0: all
  uint_t sinks;               // K, first keys that stay
  uint_t sink_q_offset;       // elements, of the queries that meet the sinks once keys are omitted
  uint_t sink_scores_offset;  // words in aux; (H) floats that join the softmax; or VKF_NO_TERM
};

// kv_append: copies the key and value columns of every slot's row, or of a prompt, into the cache.
struct KvAppendParams {
  uint_t k_offset;    // elements, of the keys in a row
  uint_t v_offset;    // elements, of the values in a row
  uint_t row_stride;  // elements from one slot to the next
  uint_t k_width;     // Hkv * E
  uint_t v_width;     // Hkv * Ev
  uint_t lines;       // keys that a cache row has room for
  uint_t rows;        // a prompt's: B * P
  uint_t tokens;      // a prompt's: P
  uint_t beams;       // a prompt's: cache rows of an item
  uint_t positions;   // C, positions of a row; AttentionDecodeParams says which line is whose
  uint_t sinks;       // K, first keys that stay
};
#ifdef __cplusplus
static_assert(sizeof(HeadLayout) == 16);
static_assert(sizeof(AttentionParams) == 128);
static_assert(sizeof(AttentionWeightsParams) == 116);
static_assert(sizeof(AttentionDecodeParams) == 76);
static_assert(sizeof(KvAppendParams) == 44);
#endif

// Specialization constants (constants.h).
#define VKF_ATTENTION_TILED_HEADS(constant)                                       \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */  \
      constant(2, kValueWidth, value_width, 64)                          /* Ev */ \
      constant(3, kSoftcap, softcap, 0) /* bits of a float; 0: none */
#define VKF_ATTENTION_TILED_SIZES(constant)                                              \
  constant(4, kRows, rows, 8)                                                            \
      constant(5, kQuads, quads, 0)       /* 1: read k four elements at a time */        \
      constant(6, kSparse, sparse, 0)     /* 1: there are sparse terms */                \
      constant(7, kRelative, relative, 0) /* VKF_RELATIVE_*; then kLocalSize >= kRows */ \
      constant(8, kCounting, counting, 0) /* 1: y (B, H, T) is how many keys are visited */
#define VKF_ATTENTION_TILED_CONSTANTS(constant) \
  VKF_ATTENTION_TILED_HEADS(constant)           \
  VKF_ATTENTION_TILED_SIZES(constant)
VKF_CONSTANTS_STRUCT(AttentionTiledConstants, VKF_ATTENTION_TILED_CONSTANTS)

#define VKF_ATTENTION_BLOCKS_CONSTANTS(constant)                                               \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */               \
      constant(2, kValueWidth, value_width, 64)                          /* Ev */              \
      constant(3, kTileM, tile_m, 4)            /* queries of an invocation */                 \
      constant(4, kStageDepth, stage_depth, 16) /* fours of E in shared memory at a time */    \
      constant(5, kStageKeys, stage_keys, 32)   /* values likewise */                          \
      constant(6, kKinds, kinds, 0)             /* VKF_KIND_* of the terms, but sparse ones */ \
      constant(7, kSoftcap, softcap, 0)         /* bits of a float; 0: none */                 \
      constant(8, kQuads, quads, 0)             /* 1: load four elements at a time */
VKF_CONSTANTS_STRUCT(AttentionBlocksConstants, VKF_ATTENTION_BLOCKS_CONSTANTS)

#define VKF_ATTENTION_LANES_CONSTANTS(constant)                                                    \
  constant(0, kLocalSize, local_size, 8) constant(1, kQueries, queries, 2) /* of one invocation */ \
      constant(2, kWidth, width, 64)                                       /* E */                 \
      constant(3, kValueWidth, value_width, 64)                            /* Ev */                \
      constant(4, kKinds, kinds, 1)     /* VKF_KIND_* of the terms; 0: nothing is masked */        \
      constant(5, kSoftcap, softcap, 0) /* bits of a float; 0: none */                             \
      constant(6, kRelative, relative,                                                             \
               0) /* VKF_RELATIVE_*, without queries, values and sparse terms */                   \
      constant(7, kCounting, counting, 0) /* 1: y (B, H, T) is how many keys are visited */        \
      constant(8, kKeys, keys, 2)         /* a power of two; 1 with sparse terms or kRelative */   \
      constant(9, kRun, run, 4)           /* elements that a lane loads at once: 1, 4, 8 */
VKF_CONSTANTS_STRUCT(AttentionLanesConstants, VKF_ATTENTION_LANES_CONSTANTS)

#define VKF_ATTENTION_STATIONARY_CONSTANTS(constant)                                        \
  constant(0, kKinds, kinds, 1)         /* VKF_KIND_* of the terms; 0: nothing is masked */ \
      constant(1, kSoftcap, softcap, 0) /* bits of a float; 0: none */
VKF_CONSTANTS_STRUCT(AttentionStationaryConstants, VKF_ATTENTION_STATIONARY_CONSTANTS)

#define VKF_ATTENTION_UNITS_CONSTANTS(constant)                                                 \
  constant(0, kLocalSize, local_size, 128) /* kSubgroups * kLanes */                            \
      constant(1, kSubgroups, subgroups, 4) constant(2, kLanes, lanes, 32)                      \
          constant(3, kParts, parts, 2) constant(4, kUnitM, unit_m, 16)                         \
              constant(5, kUnitN, unit_n, 16) constant(6, kUnitK, unit_k, 16)                   \
                  constant(7, kWidth, width, 64) /* E */                                        \
      constant(8, kValueWidth, value_width, 64)  /* Ev */                                       \
      constant(9, kKinds, kinds, 0)              /* VKF_KIND_* of the terms, but sparse ones */ \
      constant(10, kSoftcap, softcap, 0)         /* bits of a float; 0: none */                 \
      constant(11, kQuads, quads, 0)             /* 1: load four elements at a time */
VKF_CONSTANTS_STRUCT(AttentionUnitsConstants, VKF_ATTENTION_UNITS_CONSTANTS)

#define VKF_ATTENTION_UNITS_NV_CONSTANTS(constant)                                             \
  constant(0, kLocalSize, local_size, 128) constant(1, kSubgroups, subgroups, 4)               \
      constant(2, kUnitM, unit_m, 16) constant(3, kUnitN, unit_n, 16)                          \
          constant(4, kWidth, width, 64)        /* E */                                        \
      constant(5, kValueWidth, value_width, 64) /* Ev */                                       \
      constant(6, kKinds, kinds, 0)             /* VKF_KIND_* of the terms, but sparse ones */ \
      constant(7, kSoftcap, softcap, 0)         /* bits of a float; 0: none */                 \
      constant(8, kQuads, quads, 0)             /* 1: load four elements at a time */
VKF_CONSTANTS_STRUCT(AttentionUnitsNvConstants, VKF_ATTENTION_UNITS_NV_CONSTANTS)

#define VKF_ATTENTION_DECODE_CONSTANTS(constant)                                                  \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */                  \
      constant(2, kValueWidth, value_width, 64)                          /* Ev */                 \
      constant(3, kCross, cross, 0)     /* 0: the cache of earlier steps; 1: an encoder's keys */ \
      constant(4, kQueries, queries, 1) /* 2: the sinks meet a query of their own */              \
      constant(5, kRolls, rolls, 0)     /* 1: the cache has fewer lines than positions */         \
      constant(6, kSoftcap, softcap, 0) /* bits of a float; 0: none */                            \
      constant(7, kHeads, heads, 1)     /* a divisor of H / Hkv */                                \
      constant(8, kPartKeys, part_keys, 0) /* keys of a part; 0: one part */                      \
      constant(9, kParts, parts, 1)                                                               \
          constant(10, kQuads, quads, 0) /* 1: read k four elements at a time */                  \
      constant(11, kCacheFormat, cache_format, 1)
VKF_CONSTANTS_STRUCT(AttentionDecodeConstants, VKF_ATTENTION_DECODE_CONSTANTS)

#define VKF_ATTENTION_DECODE_LANES_CONSTANTS(constant)                                            \
  constant(0, kLocalSize, local_size, 8) constant(1, kWidth, width, 64) /* E */                   \
      constant(2, kValueWidth, value_width, 64)                         /* Ev */                  \
      constant(3, kCross, cross, 0)     /* 0: the cache of earlier steps; 1: an encoder's keys */ \
      constant(4, kRun, run, 8)         /* elements that a lane loads at once: 1, 4, 8 */         \
      constant(5, kRolls, rolls, 0)     /* 1: the cache has fewer lines than positions */         \
      constant(6, kSoftcap, softcap, 0) /* bits of a float; 0: none */                            \
      constant(7, kHeads, heads, 1)     /* a divisor of H / Hkv */                                \
      constant(8, kPartKeys, part_keys, 0) /* keys of a part; 0: one part */                      \
      constant(9, kParts, parts, 1) constant(10, kCacheFormat, cache_format, 1)
VKF_CONSTANTS_STRUCT(AttentionDecodeLanesConstants, VKF_ATTENTION_DECODE_LANES_CONSTANTS)

#define VKF_ATTENTION_WEIGHTS_CONSTANTS(constant)                                         \
  constant(0, kLocalSize, local_size, 64) constant(1, kWidth, width, 64) /* E */          \
      constant(2, kSoftcap, softcap, 0)   /* bits of a float; 0: none */                  \
      constant(3, kRelative, relative, 0) /* VKF_RELATIVE_*; values do not matter here */ \
      constant(4, kKinds, kinds, 0)       /* VKF_KIND_* of the terms */                   \
      constant(5, kQuads, quads, 0)       /* 1: read k four elements at a time */
VKF_CONSTANTS_STRUCT(AttentionWeightsConstants, VKF_ATTENTION_WEIGHTS_CONSTANTS)

#define VKF_KV_APPEND_CONSTANTS(constant)                                            \
  constant(0, kLocalSize, local_size, 64) constant(1, kCacheFormat, cache_format, 1) \
      constant(2, kFromRow, from_row, 0) /* 1: X has a row for every row of the cache */
VKF_CONSTANTS_STRUCT(KvAppendConstants, VKF_KV_APPEND_CONSTANTS)
#endif
