// sinusoidal_positions: the fixed position table of Vaswani et al. (2017) and its common variants.
//
//   angle(p, i) = (p + offset) 10000^(-i / den), i < D/2; den = D/2, or D/2 - 1 (half_minus_one)
//   interleaved: sin at column 2i, cos at 2i + 1; halves: [sin ..., cos ...]    -> (P, D)
//
// An odd D has one sine more than cosines and keeps den = D/2. With half_minus_one D/2 is rounded
// down and the last column is zero, as in fairseq.
//
// It is computed on the host, in double, and there is no shader by design. GLSL promises sine and
// cosine only to 2^-11 absolute, and the table is made once per model.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace vkformer {

enum class SinusoidalLayout : uint8_t { kInterleaved, kHalves };
enum class SinusoidalSpacing : uint8_t { kTransformer, kHalfMinusOne };

struct SinusoidalAttrs {
  int64_t length = 0;  // P, rows
  int64_t width = 0;   // D, columns
  int64_t offset = 0;  // tokens, position of row 0
  SinusoidalLayout layout = SinusoidalLayout::kInterleaved;
  SinusoidalSpacing spacing = SinusoidalSpacing::kTransformer;
};

// The table (P, D), or why there is none. The reason is a negative size, or more than 2^25
// elements, which are the 128 MiB that every device can bind.
Result<std::vector<float>> sinusoidal_positions(const SinusoidalAttrs& attrs);

}  // namespace vkformer
