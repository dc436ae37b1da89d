// Masks and biases of scores as kernels read them (shaders/include/score_terms.glsl), and the
// pieces of the online softmax.
#pragma once

#include "conformance/twin/twin_run.h"
#include "ops/score_kinds.h"
#include "params/attention.h"

namespace vkformer::conformance {

inline constexpr float kLowestReal = -3.402823466e38f;

inline Real keep_max(Real highest, Real score) {
  return !score.is_nan() && score > highest ? score : highest;
}
// Weighted sum over total weight; zero for a row without any allowed key.
inline Real online_result(Real sum, Real total) {
  return total.bits() == 0 ? Real(0.0f) : sum / total;
}
inline Real online_fade(Real before, Real now, Real inverse_temperature) {
  return exp_nonpositive((before - now) * inverse_temperature);
}
// Of HeadLayout.
inline size_t head_element(const HeadLayout& l, size_t b, size_t h, size_t t) {
  return l.offset + b * l.batch_stride + h * l.head_stride + t * l.row_stride;
}

struct TwinTerms {
  const Memory& words;
  ScoreTermsParams t;
  size_t heads, queries, keys;
  Real temperature;
  // Who looks for the entries of a block map: the terms do, or a walk over keys does (twin_walk.h).
  enum class Blocks : uint8_t { kFound, kWalked } blocks = Blocks::kFound;

  bool biased() const {
    return (score_kinds(t) & (VKF_KIND_BIAS | VKF_KIND_DISTANCE | VKF_KIND_SPARSE)) != 0;
  }
  bool flag(uint32_t kind) const { return (t.flags & kind) != 0; }

  bool near_enough(size_t i, size_t j) const {
    const int64_t reach = static_cast<int64_t>(i) + t.causal_offset, key = static_cast<int64_t>(j);
    if (flag(VKF_TERM_CAUSAL) && key > reach) return false;
    if (flag(VKF_TERM_WINDOW_LEFT) && key < reach - t.window_left) return false;
    return !flag(VKF_TERM_WINDOW_RIGHT) || key <= reach + t.window_right;
  }
  bool allowed(size_t b, size_t h, size_t i, size_t j) const {
    if (!near_enough(i, j) && !widened(b, i, j)) return false;
    const size_t row_words = (keys + 31) / 32;
    if (t.key_mask_offset != VKF_NO_TERM && !words.bit(t.key_mask_offset + b * row_words, j)) {
      return false;
    }
    if (t.mask_offset != VKF_NO_TERM) {
      const bool one[] = {flag(VKF_TERM_MASK_ONE_BATCH), flag(VKF_TERM_MASK_ONE_HEAD),
                          flag(VKF_TERM_MASK_ONE_QUERY)};
      if (!words.bit(t.mask_offset + row_of(one, b, h, i) * row_words, j)) return false;
    }
    return sparse_allowed(b, h, i, j);
  }
  Real bias(size_t b, size_t h, size_t i, size_t j) const {
    Real value = 0.0f;
    if (t.bias_offset != VKF_NO_TERM) {
      const bool periodic = flag(VKF_TERM_BIAS_PERIODIC);
      const bool one[] = {!periodic && flag(VKF_TERM_BIAS_ONE_BATCH), flag(VKF_TERM_BIAS_ONE_HEAD),
                          flag(VKF_TERM_BIAS_ONE_QUERY)};
      const size_t item = periodic ? b % words.words[t.bias_offset] : b;
      const size_t values = t.bias_offset + (periodic ? 1 : 0);
      value = words[values + row_of(one, item, h, i) * keys + j];
    }
    if (t.slopes_offset != VKF_NO_TERM) value += distance_bias(b, h, i, j);
    const size_t entry = finds_blocks() ? entry_of(b, h, i, j) : 0;
    if (entry != 0) value += entry_bias(entry);
    return value;
  }
  // The keys that causal and windows leave to queries first ... last.
  std::pair<size_t, size_t> key_range(size_t first, size_t last) const {
    int64_t begin = 0, end = static_cast<int64_t>(keys);
    const int64_t low = static_cast<int64_t>(first) + t.causal_offset;
    const int64_t high = static_cast<int64_t>(last) + t.causal_offset;
    if (flag(VKF_TERM_CAUSAL)) end = std::min(end, high + 1);
    if (flag(VKF_TERM_WINDOW_RIGHT)) end = std::min(end, high + t.window_right + 1);
    if (flag(VKF_TERM_WINDOW_LEFT)) begin = std::max(begin, low - t.window_left);
    return {static_cast<size_t>(begin), static_cast<size_t>(std::max<int64_t>(end, 0))};
  }
  // The word at which a sparse term begins.
  size_t sparse(uint32_t which) const { return words.words[t.sparse_offset + which]; }
  // The word at which the global tokens of an item begin.
  size_t global_tokens(size_t b) const {
    return sparse(VKF_SPARSE_GLOBAL) + b * (1 + (keys + 31) / 32 + keys);
  }
  // Whether being global lets a query see beyond causal and windows.
  bool query_widens(size_t b, size_t i) const {
    return flag(VKF_TERM_GLOBAL) && !flag(VKF_TERM_NO_GLOBAL_QUERIES) && is_global(b, i);
  }
  // The entries of a block map, two words each, that block `row` of the queries sees.
  std::pair<size_t, size_t> entries_of(size_t b, size_t h, size_t row) const {
    const size_t map = sparse(VKF_SPARSE_BLOCKS), size = words.words[map];
    const size_t item = flag(VKF_TERM_BLOCKS_ONE_BATCH) ? 0 : b;
    const size_t slice = flag(VKF_TERM_BLOCKS_ONE_HEAD) ? item : item * heads + h;
    const size_t at = map + 1 + slice * ((queries + size - 1) / size) + row;
    return {map + words.words[at], map + words.words[at + 1]};
  }
  // What an entry adds to its scores.
  Real entry_bias(size_t entry) const {
    return Real::of_bits(words.words[entry + 1]) * temperature;
  }
  // -inf where the head has none.
  Real sink(size_t h) const {
    return flag(VKF_TERM_SINKS) ? words[t.sparse_offset + h]
                                : Real::of_bits(kSignBit | kInfinityBits);
  }

 private:
  size_t row_of(const bool (&one)[3], size_t b, size_t h, size_t i) const {
    const size_t of_heads = one[1] ? 1 : heads, of_queries = one[2] ? 1 : queries;
    return ((one[0] ? 0 : b) * of_heads + (one[1] ? 0 : h)) * of_queries + (one[2] ? 0 : i);
  }
  bool is_global(size_t b, size_t token) const { return words.bit(global_tokens(b) + 1, token); }
  bool finds_blocks() const { return flag(VKF_TERM_BLOCKS) && blocks == Blocks::kFound; }
  // The entry of query i's row that holds key j; 0 where there is none.
  size_t entry_of(size_t b, size_t h, size_t i, size_t j) const {
    const size_t size = words.words[sparse(VKF_SPARSE_BLOCKS)];
    const auto [begin, end] = entries_of(b, h, i / size);
    for (size_t entry = begin; entry < end; entry += 2) {
      if (words.words[entry] == j / size) return entry;
    }
    return 0;
  }
  bool widened(size_t b, size_t i, size_t j) const {
    if (flag(VKF_TERM_GLOBAL) && is_global(b, j)) return true;
    if (flag(VKF_TERM_PREFIX) && j < words.words[sparse(VKF_SPARSE_PREFIX) + b]) return true;
    return query_widens(b, i);
  }
  bool sparse_allowed(size_t b, size_t h, size_t i, size_t j) const {
    if (flag(VKF_TERM_DOCUMENTS)) {
      const size_t first = sparse(VKF_SPARSE_DOCUMENTS) + b * 2 * keys;
      if (words.words[first + i] != words.words[first + j]) return false;
    }
    if (flag(VKF_TERM_GLOBAL) && flag(VKF_TERM_NO_GLOBAL_QUERIES) && is_global(b, i)) return false;
    if (finds_blocks() && entry_of(b, h, i, j) == 0) return false;
    return !flag(VKF_TERM_MASKED_QUERIES) ||
           words.bit(t.key_mask_offset + b * ((keys + 31) / 32), i);
  }
  Real distance_bias(size_t b, size_t h, size_t i, size_t j) const {
    auto distance = static_cast<int32_t>(j) - static_cast<int32_t>(i) - t.causal_offset;
    if (flag(VKF_TERM_DISTANCE)) {
      const auto reach = static_cast<int32_t>(words.words[t.slopes_offset]);
      const int32_t column = std::clamp(distance, -reach, reach) + reach;
      const size_t row = t.slopes_offset + 1 + h * static_cast<size_t>(2 * reach + 1);
      return words[row + static_cast<size_t>(column)];
    }
    if (flag(VKF_TERM_KEY_POSITIONS)) {
      const size_t positions = t.slopes_offset + heads + b * keys;
      const int32_t own =
          std::clamp(static_cast<int32_t>(i) + t.causal_offset, 0, static_cast<int32_t>(keys) - 1);
      distance = static_cast<int32_t>(words.words[positions + j]) -
                 static_cast<int32_t>(words.words[positions + static_cast<size_t>(own)]);
    }
    return words[t.slopes_offset + h] * static_cast<float>(distance);
  }
};

// cap tanh(score / cap).
inline Real soft_capped(Real score, float cap) {
  return cap == 0 || score.is_nan() ? score : Real(cap) * tanh_any(score / cap);
}

// x . y of two rows, added to `sum`: by fours as the kernels that load fours, else one by one.
template <class X, class Y>
Real add_products(Real sum, size_t width, bool quads, const X& x, const Y& y) {
  if (!quads) {
    for (size_t e = 0; e < width; ++e) sum += x(e) * y(e);
    return sum;
  }
  for (size_t e = 0; e < width; e += 4) {
    Real four = x(e) * y(e);
    for (size_t i = e + 1; i < e + 4; ++i) four += x(i) * y(i);
    sum += four;
  }
  return sum;
}

}  // namespace vkformer::conformance
