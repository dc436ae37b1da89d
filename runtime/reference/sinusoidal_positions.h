// sinusoidal_positions: the fixed position table of Vaswani et al. 2017 and its two common
// variants.
//
//   angle(p, i) = (p + offset) 10000^(-i / den), 0 <= i < D/2
//   den = D/2 (kTransformer) or D/2 - 1 (kHalfMinusOne, as in fairseq; with D = 2 the power is 1)
//   kInterleaved: sin at column 2i, cos at 2i + 1       kHalves: [sin ..., cos ...]
// -> (P, D), P positions. An odd D has one sine more than cosines (kTransformer), or D/2 is rounded
// down and the last column is zero (kHalfMinusOne).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

enum class SinusoidLayout : uint8_t { kInterleaved, kHalves };
enum class SinusoidSpacing : uint8_t { kTransformer, kHalfMinusOne };

struct SinusoidalPositionsOptions {
  int64_t length = 0;  // P, rows
  int64_t width = 0;   // D, columns
  int64_t offset = 0;  // position of row 0, in tokens
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  SinusoidSpacing spacing = SinusoidSpacing::kTransformer;
};

// -> (P, D).
Result<Array> sinusoidal_positions(const SinusoidalPositionsOptions& options);

}  // namespace vkformer::reference
