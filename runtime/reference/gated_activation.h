// gated_activation: y = kind(first half of the last axis of x) * second half.
// With silu this is SwiGLU, with gelu GEGLU (Shazeer 2020). x (..., 2F) -> y (..., F).
// Needs: activation.
#pragma once

#include "reference/activation.h"

namespace vkformer::reference {

// x (..., 2F) -> (..., F), the second half by `up`. An error if the last axis is odd or missing.
Result<Array> gated_activation(const Array& x, ActivationKind kind, ActivationKind up);
Result<Array> gated_activation(const Array& x, ActivationKind kind);

}  // namespace vkformer::reference
