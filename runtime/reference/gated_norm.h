// gated_norm: x act(z), with an RMS norm of groups before or after the gate, or none (Dao and Gu,
// 2024; Yang et al., 2024). x (R, G E), z (R, Z), gain (G, E) -> (R, G E).
// Needs: Array, activation.
#pragma once

#include "reference/activation.h"

namespace vkformer::reference {

struct GatedNormOptions {
  enum class Order : uint8_t { kGateOnly, kGateFirst, kNormFirst } order = Order::kGateOnly;
  ActivationKind activation = ActivationKind::kSilu;
  int64_t first = 0;      // column of z of the first gate
  double epsilon = 1e-6;  // added to the mean square, inside the root
};

// x (R, G E), z (R, Z), gain (G, E) -> (R, G E).
Result<Array> gated_norm(const Array& x, const Array& z, const Array& gain,
                         const GatedNormOptions& options = {});

}  // namespace vkformer::reference
