// lsh_hash: bucket = argmax [x R | -x R], the first index on ties, by random rotations R (Andoni et
// al. 2015). x (B, H, S, E), rotations (H, E, R, C) -> buckets (B, H, R, S).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct LshHashOptions {
  std::vector<int64_t> factors;  // of the number of buckets: bucket0 + factor0 * bucket1 ...
  const Array* mask = nullptr;   // (B, S), 1 = kept; others go into one bucket more
  bool offsets = true;           // round r's buckets begin after round r - 1's
};

// x (B, H, S, E), rotations (H, E, R, C) -> (B, H, R, S).
Result<Array> lsh_hash(const Array& x, const Array& rotations, const LshHashOptions& options);

}  // namespace vkformer::reference
