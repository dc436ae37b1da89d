// Attention in a decoding step over a cache that is made on the host: what checks and the tests of
// special steps share.
#pragma once

#include "conformance/cases.h"
#include "conformance/packed_cache.h"
#include "ops/attention_step.h"

namespace vkformer::conformance {

struct AttentionStep {
  int64_t rows = 6;                          // R = items * beams
  int64_t beams = 1;                         // rows of an item
  int64_t lines = 70;                        // C or S
  int64_t heads = 4;                         // H
  int64_t kv_heads = 2;                      // Hkv
  int64_t head_width = 16;                   // E
  int64_t value_width = 16;                  // Ev
  std::optional<int64_t> value_column = {};  // of a key, where values are columns of it
  uint32_t position = 66;
  std::vector<uint32_t> slot_rows = {4, 0, 5};  // of the live slots
  AttentionStepAttrs::Source source = AttentionStepAttrs::Source::kSelf;
  int64_t query_column = 3;  // of a row of q, where its heads begin
  uint32_t start = 0;        // of every slot: how much shorter its prompt is
  uint32_t window = 0;       // keys that are seen; 0: all
  bool sloped = false;       // ALiBi
  int64_t reach = 0;         // of a bias by distance; 0: none
  bool masked = false;       // cross: some keys
  bool sinks = false;        // sink scores
  CacheFormat cache = CacheFormat::kF32;

  bool self() const { return source == AttentionStepAttrs::Source::kSelf; }
  int64_t own_position() const { return int64_t{position} - start; }
  int64_t line() const { return value_column ? head_width : kv_heads * (head_width + value_width); }
  int64_t first_value() const { return value_column.value_or(kv_heads * head_width); }
};

struct AttentionStepArrays {
  Array q;                    // (R, column + H E)
  Array kv;                   // (R, C, line) or (B, S, line)
  Tensor stored;              // kv as its format holds it
  std::vector<uint32_t> aux;  // ancestry (R, C), or key mask (B, ceil(S/32))
  Array slopes;               // (H)
  Array distances;            // (H, 2 reach + 1)
  Array sinks;                // (H)
};

Result<AttentionStepArrays> make_step_arrays(const AttentionStep& c);

// Of live slots; others must not be written.
Result<CheckCase> attention_step_case(const AttentionStep& c, const AttentionStepArrays& a);

// Of attention.
void add_attention_step_checks(OperatorCases& cases);

}  // namespace vkformer::conformance
