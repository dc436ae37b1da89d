// rotary: pairs of columns turned by their position's angles (Su et al., 2021, "RoFormer").
// x (..., W), table (P, r), r/2 cosines then r/2 sines a row -> y (..., W).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

enum class RotaryPairing : uint8_t {
  kHalves,       // columns i and i + r/2 of a head
  kInterleaved,  // columns 2i and 2i + 1
};

struct RotaryOptions {
  int64_t heads = 1;       // from the first column on; later columns are copied
  int64_t head_width = 0;  // E; the columns of a head from r on are copied
  RotaryPairing pairing = RotaryPairing::kHalves;
};

// x (..., W), table (P, r), positions with as many elements as x has rows -> (..., W). A position
// that is no row of the table makes its row's turned columns NaN. An error if shapes do not fit.
Result<Array> rotary(const Array& x, const Array& table, const Array& positions,
                     const RotaryOptions& options);

}  // namespace vkformer::reference
