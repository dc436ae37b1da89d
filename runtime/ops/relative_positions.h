// relative_positions: where attention biases come from that depend on the distance of a query and
// a key. Computed on the host; biases reach kernels as score terms.
//
//   T5 (Raffel et al., 2020): a learned bias for each bucket of distances
//   ALiBi (Press et al., 2022): slope_h (j - i)
//   Swin (Liu et al., 2021): a learned bias for each difference of row and column in a window
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace vkformer {

struct T5Buckets {
  enum class Direction : uint8_t {
    kBoth,  // half of the buckets are for keys after the query
    kBack,  // keys after the query share bucket 0
  } direction = Direction::kBoth;
  int64_t buckets = 32;
  int64_t max_distance = 128;  // tokens, from which on the last bucket holds
};

// Are there enough buckets, and does the distance exceed those that have a bucket of their own?
Status check_t5_buckets(const T5Buckets& t5);

// The bucket of relative = key position - query position. There are b buckets (half of them if
// kBoth, for either sign). With e = floor(b / 2), distances n < e have their own bucket. Bucket e +
// t holds n >= e (max_distance / e)^(t / (b - e)), t < b - e. The bound is met exactly where it is
// a whole number, which a logarithm would leave to rounding. Precondition: check_t5_buckets.
uint32_t t5_bucket(int64_t relative, const T5Buckets& t5);

// The slopes (H): 2^(-8 (h + 1) / H) for H a power of two. Else those of the next lower power k,
// then the 1st, 3rd, 5th, ... of 2k. Empty for heads below 1.
std::vector<double> alibi_slopes(int64_t heads);

// Rows of the bias table, ((2w - 1)^2, H), for queries and keys of a window of w x w. They are
// (Drow + w - 1)(2w - 1) + Dcol + w - 1 with D = query - key -> (w^2, w^2). At most 128 a side.
Result<std::vector<uint32_t>> swin_relative_index(int64_t window);

}  // namespace vkformer
