// Where a kernel over scores finds its masks and biases, inside one binding of 32-bit words. Phones
// guarantee four storage bindings, so all terms share one. runtime/ops/score_terms.h packs it,
// include/score_terms.glsl reads it.
#ifndef VKFORMER_PARAMS_SCORE_TERMS_H
#define VKFORMER_PARAMS_SCORE_TERMS_H
#include "types.h"

#define VKF_NO_TERM 0xffffffffu

// Broadcast flags: the term has one slice for all batches, heads or queries.
#define VKF_TERM_MASK_ONE_BATCH 1u
#define VKF_TERM_MASK_ONE_HEAD 2u
#define VKF_TERM_MASK_ONE_QUERY 4u
#define VKF_TERM_BIAS_ONE_BATCH 8u
#define VKF_TERM_BIAS_ONE_HEAD 16u
#define VKF_TERM_BIAS_ONE_QUERY 32u
// Conditions on (query i, key j); see the window fields.
#define VKF_TERM_CAUSAL 64u
#define VKF_TERM_WINDOW_LEFT 128u
#define VKF_TERM_WINDOW_RIGHT 256u
// The bias repeats over the batch (windows of a picture). The word at bias_offset is its number of
// slices n, the values follow, and item b reads slice b % n.
#define VKF_TERM_BIAS_PERIODIC 512u
// slopes_offset holds a bias by distance instead of slopes. It has a reach R, then (H, 2R + 1)
// floats. Pair (i, j) adds column clamp(j - i - causal_offset, -R, R) + R.
#define VKF_TERM_DISTANCE 1024u
// After the slopes follow the positions (B, S) of the keys, which ALiBi counts by instead of j.
// Query i stands at the position of key i + causal_offset.
#define VKF_TERM_KEY_POSITIONS 2048u
// What follows is found through VKF_SPARSE_WORDS words at sparse_offset, each the word (counted
// from the start of the binding) where one of these begins. Global tokens widen causal and windows.
// Of each item 1 + ceil(S/32) + S words. These are their number n, bits as in key masks, and a list
// whose first n words are the tokens, ascending. Needs T = S.
#define VKF_TERM_GLOBAL 4096u
// A global query sees nothing: other weights compute its row (Longformer).
#define VKF_TERM_NO_GLOBAL_QUERIES 8192u
// Documents packed into one row. Each item has 2 S words. First comes, of each token, the first
// token of its document, which is the document's name. Then follows of each the one past the last.
// Pairs of different documents are masked. Needs T = S.
#define VKF_TERM_DOCUMENTS 16384u
// A prefix widens causal and windows: (B) words P; keys below P are allowed.
#define VKF_TERM_PREFIX 32768u
// A block map. The block size b in tokens. (B|1, H|1, ceil(T/b)) + 1 words, where the entries of
// each block of queries begin, counted from the block size on. Entries of two words: a block of
// keys, ascending, and the bits of a float. The float is added to the block's scores after the
// temperature (the logarithm of how often it counts). A key in no entry is masked.
#define VKF_TERM_BLOCKS 65536u
#define VKF_TERM_BLOCKS_ONE_BATCH 131072u
#define VKF_TERM_BLOCKS_ONE_HEAD 262144u
// A query that the key mask hides sees nothing. Needs T = S and a key mask.
#define VKF_TERM_MASKED_QUERIES 524288u
// Sink scores: (H) floats at sparse_offset, which sparse terms exclude. Each head's joins the
// softmax as one more column without a value.
#define VKF_TERM_SINKS 1048576u
// What needs sparse_offset.
#define VKF_TERM_SPARSE (4096u | 16384u | 32768u | 65536u)

#define VKF_SPARSE_GLOBAL 0u
#define VKF_SPARSE_DOCUMENTS 1u
#define VKF_SPARSE_PREFIX 2u
#define VKF_SPARSE_BLOCKS 3u
#define VKF_SPARSE_WORDS 4u

struct ScoreTermsParams {
  uint_t
      key_mask_offset;   // words; (B, ceil(S/32)) words, bit j%32 of word j/32 set = key j allowed
  uint_t mask_offset;    // words; (B|1, H|1, T|1, ceil(S/32)) words, bits as above
  uint_t bias_offset;    // words; (B|1|n, H|1, T|1, S) floats, added to the scaled score
  uint_t slopes_offset;  // words; (H) floats: ALiBi, slope_h * (j - i - causal_offset) is added;
                         // see VKF_TERM_DISTANCE and VKF_TERM_KEY_POSITIONS for its other forms
  uint_t flags;
  int_t causal_offset;   // query i may see keys j <= i + causal_offset
  int_t window_left;     // and keys j >= i + causal_offset - window_left
  int_t window_right;    // and keys j <= i + causal_offset + window_right
  uint_t sparse_offset;  // words; see VKF_TERM_SPARSE and VKF_TERM_SINKS
};
#ifdef __cplusplus
static_assert(sizeof(ScoreTermsParams) == 36);
#endif
#endif
