// mean_pool: y = sum over kept tokens of x / max(count, 1e-9), or another pool of them. Then, if
// asked, y / max(|y|, 1e-12) (Reimers, Gurevych 2019). Masked tokens are omitted even when they
// hold NaN; a row without any kept token gives zeros. x (B, S, D), mask (B, S) -> y (B, D). Needs:
// Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// Column by column it is the largest value (a NaN wins), or the last kept token's. It may be the
// mean with token t (from 0) weighing t + 1. It may be the sum divided by the root of the number of
// kept tokens.
enum class Pool : uint8_t { kMean, kMax, kLast, kWeightedMean, kMeanSqrtLength };

struct MeanPoolOptions {
  bool normalize = false;       // divide by the Euclidean length
  const Array* mask = nullptr;  // (B, S), 1 = kept; absent: all
  Pool pool = Pool::kMean;
};

// x (B, S, D) -> (B, D).
Result<Array> mean_pool(const Array& x, const MeanPoolOptions& options = {});

}  // namespace vkformer::reference
