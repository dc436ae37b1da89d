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

struct AttentionParams {
  HeadLayout q;  // (B, H, T, E)
  HeadLayout k;  // (B, Hkv, S, E); k and v lie in one binding
  HeadLayout v;  // (B, Hkv, S, Ev)
  HeadLayout y;  // (B, H, T, Ev)
  uint_t heads;          // H
  uint_t heads_per_kv;   // H / Hkv
  uint_t queries;        // T
  uint_t keys;           // S
  float_t scale;         // of q.k
  float_t inverse_temperature;  // of the whole score, applied after the row's maximum is taken off
  ScoreTermsParams terms;
  uint_t batch;          // B
};

// attention_weights: the probabilities of heads first_head ... first_head + heads_out - 1.
struct AttentionWeightsParams {
  HeadLayout q;          // (B, H, T, E)
  HeadLayout k;          // (B, Hkv, S, E)
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

// attention_decode: one query a slot, keys and values in a cache (R, C, Hkv * (E + Ev)) or, for
// cross-attention, (B, S, Hkv * (E + Ev)); a line holds the keys of all heads, then the values.
struct AttentionDecodeParams {
  uint_t heads;          // H
  uint_t heads_per_kv;   // H / Hkv
  uint_t q_offset;       // elements
  uint_t q_stride;       // elements from one slot to the next
  uint_t y_stride;       // elements from one slot to the next
  uint_t line;           // elements from one key to the next: Hkv * (E + Ev)
  uint_t value_offset;   // of the values in a line, in elements: Hkv * E
  uint_t lines;          // keys that a row or item has room for: C or S
  uint_t beams;          // rows of a batch item
  uint_t has_aux;        // 1: aux holds the ancestry, or for cross-attention the key mask
  float_t scale;         // of q.k
  uint_t window;         // keys that a query sees, its own the last; 0: all
  uint_t slopes_offset;  // words in aux; (H) floats: ALiBi slopes; or VKF_NO_TERM
  uint_t distance_offset;  // words in aux; a reach R, then (H, 2R + 1) floats; or VKF_NO_TERM
};

// kv_append: copies the key and value columns of every slot's row, or of a prompt, into the cache.
struct KvAppendParams {
  uint_t k_offset;    // elements, of the keys in a row
  uint_t v_offset;    // elements, of the values in a row
  uint_t row_stride;  // elements from one slot to the next
  uint_t k_width;     // Hkv * E
  uint_t v_width;     // Hkv * Ev
  uint_t lines;       // C, keys that a cache row has room for
  uint_t rows;        // a prompt's: B * P
  uint_t tokens;      // a prompt's: P
  uint_t beams;       // a prompt's: cache rows of an item
};
#ifdef __cplusplus
static_assert(sizeof(HeadLayout) == 16);
static_assert(sizeof(AttentionParams) == 128);
static_assert(sizeof(AttentionWeightsParams) == 108);
static_assert(sizeof(AttentionDecodeParams) == 56);
static_assert(sizeof(KvAppendParams) == 36);
#endif
#endif
