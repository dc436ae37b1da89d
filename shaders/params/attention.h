// Push constants of the attention kernels.
#ifndef VKFORMER_PARAMS_ATTENTION_H
#define VKFORMER_PARAMS_ATTENTION_H
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

// Relative positions (Shaw et al. 2018; Dai et al. 2019) lie in the binding of k and v, from element
// `offset` on; d(i, j) = clamp(j - i - causal_offset, -R, R) + R:
//   rows r (2R + 1, Hr, E), Hr = H or 1: q_i . r_d is added to q_i . k_j
//   with VKF_RELATIVE_BIASES a (H, E), then c (H, E): (q_i + a) . k_j + (q_i + c) . r_d
//   with VKF_RELATIVE_VALUES rows w (2R + 1, Hr, Ev): w_d is added to v_j
struct RelativeParams {
  uint_t offset;  // elements
  uint_t reach;   // R, in tokens
};

// What there is of them, as a specialization constant; 0: none.
#define VKF_RELATIVE_KEYS 1u
#define VKF_RELATIVE_ONE_HEAD 2u
#define VKF_RELATIVE_BIASES 4u
#define VKF_RELATIVE_VALUES 8u

struct AttentionParams {
  HeadLayout q;  // (B, H, T, E)
  HeadLayout k;  // (B, Hkv, S, E); k and v lie in one binding
  HeadLayout v;  // (B, Hkv, S, Ev)
  HeadStrides y;  // (B, H, T, Ev)
  RelativeParams relative;
  uint_t heads;          // H, and above its 16 bits H / Hkv
  uint_t queries;        // T
  uint_t keys;           // S
  float_t scale;         // of q.k
  float_t inverse_temperature;  // of the whole score, applied after the row's maximum is taken off
  ScoreTermsParams terms;
  uint_t batch;          // B
};
#define VKF_HEADS(packed) ((packed) & 0xffffu)
#define VKF_HEADS_PER_KV(packed) ((packed) >> 16u)

// attention_weights: the probabilities of heads first_head ... first_head + heads_out - 1.
struct AttentionWeightsParams {
  HeadLayout q;          // (B, H, T, E)
  HeadLayout k;          // (B, Hkv, S, E)
  RelativeParams relative;  // in k's binding
  uint_t heads;          // H
  uint_t heads_per_kv;   // H / Hkv
  uint_t first_head;
  uint_t heads_out;      // Hsel
  uint_t queries;        // T
  uint_t keys;           // S
  uint_t rows;           // B * Hsel * T
  float_t scale;         // of q.k
  float_t inverse_temperature;  // of the whole score
  uint_t raw_scores;     // 1: scores, -inf where masked; 0: probabilities
  ScoreTermsParams terms;
};

// attention_decode: one query a slot, keys and values in a cache (R, lines, Hkv * (E + Ev)) or, for
// cross-attention, (B, S, Hkv * (E + Ev)); a line holds the keys of all heads, then the values.
// Where a cache has fewer lines than positions, that of position t is line t for t < sinks, and
// from there on sinks + (t - sinks) % (lines - sinks).
struct AttentionDecodeParams {
  uint_t heads;          // H
  uint_t heads_per_kv;   // H / Hkv
  uint_t q_offset;       // elements
  uint_t q_stride;       // elements from one slot to the next
  uint_t y_stride;       // elements from one slot to the next
  uint_t line;           // elements, of a packed cache words, from one key to the next
  uint_t value_offset;   // of the values in a line, in elements: Hkv * E
  uint_t lines;          // keys that a row or item has room for: at most C, or S
  uint_t beams;          // rows of a batch item
  uint_t has_aux;        // 1: aux holds the ancestry, or for cross-attention the key mask
  float_t scale;         // of q.k
  uint_t window;         // keys that a query sees, its own the last; 0: all
  uint_t slopes_offset;  // words in aux; (H) floats: ALiBi slopes; or VKF_NO_TERM
  uint_t distance_offset;  // words in aux; a reach R, then (H, 2R + 1) floats; or VKF_NO_TERM
  uint_t positions;      // C, positions of a row: the width of the ancestry
  uint_t context;        // N, keys that a query sees at most; 0: all
  uint_t sinks;          // K, first keys that stay
  uint_t sink_q_offset;  // elements, of the queries that meet the sinks once keys have been left out
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
static_assert(sizeof(AttentionDecodeParams) == 72);
static_assert(sizeof(KvAppendParams) == 44);
#endif
#endif
