// inverse_start: y = a^T / the largest column sum, of all matrices or of each its own (Razavi et
// al. 2014). a (N, M, M) -> y (N, M, M). nystrom_attention: the attention it is the start of,
// unfused (Xiong et al. 2021). Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

enum class InverseMaximum : uint8_t { kShared, kOwn };

// a (N, M, M) -> (N, M, M).
Result<Array> inverse_start(const Array& a, InverseMaximum maximum);

struct NystromReference {
  Array output;          // (B, H, S, Ev)
  Array pseudo_inverse;  // (B, H, M, M)
};

// q, k (B, H, S, E), v (B, H, S, Ev), M landmarks, a divisor of S.
struct NystromArrays {
  const Array& q;
  const Array& k;
  const Array& v;
};
Result<NystromReference> nystrom_attention(const NystromArrays& arrays, int64_t landmarks,
                                           InverseMaximum maximum);

}  // namespace vkformer::reference
