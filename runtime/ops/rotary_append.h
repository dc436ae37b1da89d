// rotary_append: rotary and kv_append in one operator of a decoding step. It rotates every live
// slot's queries by the slot's position (rotary.h). It writes the rotated keys and the values into
// the cache (kv_append.h).
//
//   x (slots, (H + Hkv) E + Hkv Ev), table (P, r)
//     -> y (slots, (H + again) E), cache (R, lines, Hkv (E + Ev)), keys first, then values
//
// A row of x is [q | k | v], heads of width E, of v Ev, side by side. The table, a position beyond
// it and the queries that follow again are as in rotary.h. The lines of the cache are as in
// kv_append.h.
#pragma once

#include "ops/rotary.h"

namespace vkformer {

struct RotaryAppendAttrs {
  uint32_t heads = 1;        // H
  uint32_t kv_heads = 1;     // Hkv
  uint32_t head_width = 0;   // E
  uint32_t value_width = 0;  // Ev; 0: E
  // kNo: x and the cache have keys alone, in whose columns the values are (attention_step.h).
  enum class Values : uint8_t { kNo, kYes } has_values = Values::kYes;
  uint32_t rotary_width = 0;  // r, even, at most E
  RotaryPairs pairs = RotaryPairs::kHalves;
  uint32_t again_heads = 0;  // 0 or H
  uint32_t again_limit = 0;  // tokens
  uint32_t positions = 0;    // C, positions of a row; 0: the cache's lines
  uint32_t sinks = 0;        // first positions that stay; fewer than the lines

  uint32_t values() const {
    if (has_values == Values::kNo) return 0;
    return value_width > 0 ? value_width : head_width;
  }
};

struct RotaryAppendInputs {
  TensorId x = kNoTensor;      // (slots, (H + Hkv) E + Hkv Ev), F32
  TensorId table = kNoTensor;  // (P, r), F32: cosines, then sines
  TensorId state = kNoTensor;  // DecodeState and slot rows (words), U32
  TensorId cache =
      kNoTensor;  // (R, lines, Hkv (E + Ev)), F32, or words (ops/cache_format.h), external
};

// The queries' description (slots, (H + again) E), or why the inputs do not fit.
Result<TensorDesc> check_rotary_append(const TensorDesc& x, const TensorDesc& table,
                                       const TensorDesc& state, const TensorDesc& cache,
                                       const RotaryAppendAttrs& attrs);

// Adds the node to a decoding step's graph and returns y (slots, (H + again) E).
Result<TensorId> add_rotary_append(Graph& graph, const RotaryAppendInputs& inputs,
                                   const RotaryAppendAttrs& attrs);

Status lower_rotary_append(LowerContext& context, const Node& node);

}  // namespace vkformer
