// max_pool: y[b, oy OW + ox, c] is a maximum over ky, kx inside the picture. Its values are x[b, c,
// oy sh + ky - top, ox sw + kx - left]. NaN wins.
// x (B, C, H, W) -> y (B, OH * OW, C). Needs: Array, WindowOptions.
#pragma once

#include "reference/unfold.h"

namespace vkformer::reference {

// x (B, C, H, W) -> (B, OH * OW, C).
Result<Array> max_pool(const Array& x, const WindowOptions& options);

}  // namespace vkformer::reference
