// Heads of queries, keys and values: the sizes of the attention operators that are linear in time.
#pragma once

#include "conformance/content.h"

namespace vkformer::conformance {

// (B, H, S, E) and the width of values.
struct HeadSizes {
  Shape q;
  int64_t value_width;
};

inline const HeadSizes kHeadSizes[] = {
    {{1, 1, 1, 1}, 1},     {{2, 3, 7, 8}, 9},     {{1, 2, 31, 16}, 16},  {{2, 2, 33, 33}, 20},
    {{1, 2, 129, 64}, 64}, {{1, 1, 257, 64}, 32}, {{1, 1, 1500, 16}, 17}};

bool is_quick(const HeadSizes& s);

struct HeadArrays {
  Array q, k, v;
  TensorMap inputs() const { return {{"Q", floats(q)}, {"K", floats(k)}, {"V", floats(v)}}; }
};

HeadArrays make_head_arrays(const HeadSizes& s, double scale);

// Tokens of heads (B, H, S, E).
inline const Shape kTokenShapes[] = {
    {1, 1, 1, 1}, {2, 2, 33, 16}, {1, 2, 257, 64}, {1, 1, 1500, 7}};

}  // namespace vkformer::conformance
