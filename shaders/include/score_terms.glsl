// needs: a readonly storage block with `uint terms[]`; score_terms.h; VKF_TERM_HEADS,
// VKF_TERM_QUERIES and VKF_TERM_KEYS, expressions for H, T and S. Kernels that visit keys by
// key_walk.glsl, which knows the block map, define VKF_TERM_MAY_SPARSE, a constant that is false
// where no such term is set. Masks and biases of one score. b, h: batch and query head; i: query;
// j: key. Kernels that know which kinds of terms there are define VKF_TERM_MAY(kinds) of
// VKF_KIND_*. Kernels that divide a score with its bias by a temperature define
// VKF_TERM_TEMPERATURE.
#include "score_kinds.h"
#ifndef VKF_TERM_TEMPERATURE
#define VKF_TERM_TEMPERATURE 1.0
#endif
#ifndef VKF_TERM_MAY
#define VKF_TERM_MAY(kinds) true
#endif
#ifndef VKF_TERM_MAY_SPARSE
#define VKF_TERM_MAY_SPARSE VKF_TERM_MAY(VKF_KIND_SPARSE)
#define VKF_TERM_FIND_BLOCKS
#endif

// The word where a sparse term begins; only where its flag is set.
uint sparse_term(ScoreTermsParams t, uint which) { return terms[t.sparse_offset + which]; }

// The word where the global tokens of an item begin.
uint global_tokens(ScoreTermsParams t, uint b) {
  const uint row_words = (VKF_TERM_KEYS + 31u) >> 5u;
  return sparse_term(t, VKF_SPARSE_GLOBAL) + b * (1u + row_words + VKF_TERM_KEYS);
}

bool is_global(ScoreTermsParams t, uint b, uint token) {
  return (terms[global_tokens(t, b) + 1u + (token >> 5u)] & (1u << (token & 31u))) != 0u;
}

// Is the query one whose being global lets it see beyond causal and windows?
bool query_widens(ScoreTermsParams t, uint b, uint i) {
  const uint kind = VKF_TERM_GLOBAL | VKF_TERM_NO_GLOBAL_QUERIES;
  return (t.flags & kind) == VKF_TERM_GLOBAL && is_global(t, b, i);
}

// Is a pair that causal or a window masks allowed nonetheless?
bool widened(ScoreTermsParams t, uint b, uint i, uint j) {
  if ((t.flags & VKF_TERM_GLOBAL) != 0u && is_global(t, b, j)) return true;
  if ((t.flags & VKF_TERM_PREFIX) != 0u && j < terms[sparse_term(t, VKF_SPARSE_PREFIX) + b]) {
    return true;
  }
  return query_widens(t, b, i);
}

// The word where the row of the block map for query i begins.
uint block_row(ScoreTermsParams t, uint b, uint h, uint i) {
  const uint blocks = sparse_term(t, VKF_SPARSE_BLOCKS);
  const uint size = terms[blocks];
  const uint bb = (t.flags & VKF_TERM_BLOCKS_ONE_BATCH) != 0u ? 0u : b;
  const bool one_head = (t.flags & VKF_TERM_BLOCKS_ONE_HEAD) != 0u;
  const uint slice = one_head ? bb : bb * VKF_TERM_HEADS + h;
  return blocks + 1u + slice * ((VKF_TERM_QUERIES + size - 1u) / size) + i / size;
}

#ifdef VKF_TERM_FIND_BLOCKS
// The word of the entry of query i's row that holds key j; 0 where there is none.
uint find_block(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  const uint blocks = sparse_term(t, VKF_SPARSE_BLOCKS);
  const uint row = block_row(t, b, h, i);
  const uint wanted = j / terms[blocks];
  uint low = terms[row];
  uint high = terms[row + 1u];
  while (low < high) {
    const uint middle = low + (high - low) / 4u * 2u;
    const uint found = terms[blocks + middle];
    if (found == wanted) return blocks + middle;
    if (found < wanted)
      low = middle + 2u;
    else
      high = middle;
  }
  return 0u;
}
#endif

// What sparse terms say beside widening.
bool sparse_allowed(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  if ((t.flags & VKF_TERM_DOCUMENTS) != 0u) {
    const uint first = sparse_term(t, VKF_SPARSE_DOCUMENTS) + b * 2u * VKF_TERM_KEYS;
    if (terms[first + i] != terms[first + j]) return false;
  }
  const uint unseeing = VKF_TERM_GLOBAL | VKF_TERM_NO_GLOBAL_QUERIES;
  if ((t.flags & unseeing) == unseeing && is_global(t, b, i)) return false;
#ifdef VKF_TERM_FIND_BLOCKS
  if ((t.flags & VKF_TERM_BLOCKS) != 0u && find_block(t, b, h, i, j) == 0u) return false;
#endif
  if ((t.flags & VKF_TERM_MASKED_QUERIES) == 0u) return true;
  const uint row = t.key_mask_offset + b * ((VKF_TERM_KEYS + 31u) >> 5u);
  return (terms[row + (i >> 5u)] & (1u << (i & 31u))) != 0u;
}

// What causal and windows say.
bool near_enough(ScoreTermsParams t, uint i, uint j) {
  if (!VKF_TERM_MAY(VKF_KIND_NEAR)) return true;
  const int reach = int(i) + t.causal_offset;
  if ((t.flags & VKF_TERM_CAUSAL) != 0u && int(j) > reach) return false;
  if ((t.flags & VKF_TERM_WINDOW_LEFT) != 0u && int(j) < reach - t.window_left) return false;
  return (t.flags & VKF_TERM_WINDOW_RIGHT) == 0u || int(j) <= reach + t.window_right;
}

// What the masks say: the word that holds the bit of key j.
uint allowed_bits(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  uint bits = ~0u;
  const uint row_words = (VKF_TERM_KEYS + 31u) >> 5u;
  if (VKF_TERM_MAY(VKF_KIND_KEY_MASK) && t.key_mask_offset != VKF_NO_TERM) {
    bits = terms[t.key_mask_offset + b * row_words + (j >> 5u)];
  }
  if (VKF_TERM_MAY(VKF_KIND_MASK) && t.mask_offset != VKF_NO_TERM) {
    const uint heads = (t.flags & VKF_TERM_MASK_ONE_HEAD) != 0u ? 1u : VKF_TERM_HEADS;
    const uint queries = (t.flags & VKF_TERM_MASK_ONE_QUERY) != 0u ? 1u : VKF_TERM_QUERIES;
    const uint bb = (t.flags & VKF_TERM_MASK_ONE_BATCH) != 0u ? 0u : b;
    const uint row = (bb * heads + (heads == 1u ? 0u : h)) * queries + (queries == 1u ? 0u : i);
    bits &= terms[t.mask_offset + row * row_words + (j >> 5u)];
  }
  return bits;
}

bool score_allowed(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  if (!near_enough(t, i, j) && !(VKF_TERM_MAY_SPARSE && widened(t, b, i, j))) return false;
  if ((allowed_bits(t, b, h, i, j) & (1u << (j & 31u))) == 0u) return false;
  return !VKF_TERM_MAY_SPARSE || sparse_allowed(t, b, h, i, j);
}

// What the distance from query to key adds: ALiBi or a table.
float distance_bias(ScoreTermsParams t, uint b, uint h, int i, int j) {
  int distance = j - i - t.causal_offset;
  if ((t.flags & VKF_TERM_DISTANCE) != 0u) {
    const int reach = int(terms[t.slopes_offset]);
    const int column = clamp(distance, -reach, reach) + reach;
    return uintBitsToFloat(terms[t.slopes_offset + 1u + h * uint(2 * reach + 1) + uint(column)]);
  }
  if ((t.flags & VKF_TERM_KEY_POSITIONS) != 0u) {
    const uint positions = t.slopes_offset + VKF_TERM_HEADS + b * VKF_TERM_KEYS;
    const int own = clamp(i + t.causal_offset, 0, int(VKF_TERM_KEYS) - 1);
    distance = int(terms[positions + uint(j)]) - int(terms[positions + uint(own)]);
  }
  return uintBitsToFloat(terms[t.slopes_offset + h]) * float(distance);
}

// The additive part: bias, ALiBi or a bias by distance, before the temperature.
float score_bias(ScoreTermsParams t, uint b, uint h, uint i, uint j) {
  float value = 0.0;
  if (VKF_TERM_MAY(VKF_KIND_BIAS) && t.bias_offset != VKF_NO_TERM) {
    const uint heads = (t.flags & VKF_TERM_BIAS_ONE_HEAD) != 0u ? 1u : VKF_TERM_HEADS;
    const uint queries = (t.flags & VKF_TERM_BIAS_ONE_QUERY) != 0u ? 1u : VKF_TERM_QUERIES;
    uint bb = (t.flags & VKF_TERM_BIAS_ONE_BATCH) != 0u ? 0u : b;
    uint values = t.bias_offset;
    if ((t.flags & VKF_TERM_BIAS_PERIODIC) != 0u) {
      bb = b % terms[values];
      ++values;
    }
    const uint row = (bb * heads + (heads == 1u ? 0u : h)) * queries + (queries == 1u ? 0u : i);
    value = uintBitsToFloat(terms[values + row * VKF_TERM_KEYS + j]);
  }
  if (VKF_TERM_MAY(VKF_KIND_DISTANCE) && t.slopes_offset != VKF_NO_TERM) {
    value += distance_bias(t, b, h, int(i), int(j));
  }
#ifdef VKF_TERM_FIND_BLOCKS
  if (VKF_TERM_MAY_SPARSE && (t.flags & VKF_TERM_BLOCKS) != 0u) {
    value += uintBitsToFloat(terms[find_block(t, b, h, i, j) + 1u]) * VKF_TERM_TEMPERATURE;
  }
#endif
  return value;
}
