// Attention whose q, k and v are columns of one tensor.
#pragma once

#include "ops/attention_cases.h"

namespace vkformer::testing {

// Attributes for a merged projection (B, T, 3 D).
inline AttentionAttrs merged_attrs(const AttentionCase& c) {
  AttentionAttrs a = make_attrs(c, no_score_terms());
  const uint32_t width = a.heads * a.head_width;
  a.q = merged_rows(a.queries, 3 * width, 0, a.head_width);
  a.k = merged_rows(a.queries, 3 * width, width, a.head_width);
  a.v = merged_rows(a.queries, 3 * width, 2 * width, a.head_width);
  a.y = {};
  a.y_shape = {};
  return a;
}

}  // namespace vkformer::testing
