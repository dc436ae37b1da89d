// Sums over keys that linear_attention and sequence_projection share: sum_j f_j [v_j | 1] per head.
// They are taken in chunks of keys by many workgroups and merged in a fixed order. Internal
// to both.
#pragma once

#include "ops/op.h"
#include "params/linear_attention.h"

namespace vkformer {

// Words of one state: (M, Ev + 1) and two peaks.
inline uint32_t linear_state_words(uint32_t features, uint32_t value_width) {
  return features * (value_width + 1) + 2;
}

// Keys of a chunk where nothing but the sum over all is wanted.
inline constexpr uint32_t kSumChunk = 512;
// Words that the scratch memory of one launch may have; more heads than fit run one after another.
inline constexpr uint64_t kMostLaunchWords = 16ull << 20;

// Buffers (plan indices) and numbers of one sum. The numbers that depend on the units of a launch
// are set by the caller.
struct StateSum {
  uint32_t x = 0;         // holds v
  uint32_t features = 0;  // f
  uint32_t mask = ~0u;    // (B, ceil(S/32)) words, or ~0
  uint32_t states = 0;    // scratch (units, chunks, W); unused where one chunk is all
  uint32_t total = 0;     // where scan.total_offset and strides point
  LinearStateParams state{};
  LinearScanParams scan{};
  uint32_t value_width = 1;  // Ev
  bool causal = false;       // keep the sums before each chunk in `states`
  bool fades = false;        // features are exponents with peaks
  bool has_one = false;      // the last feature is the constant one
  bool direct() const;       // no scan: one chunk is all
};

// Appends the dispatches.
void emit_state_sum(LowerContext& context, const Node& node, const StateSum& sum);

}  // namespace vkformer
