// mix_rounds: the rounds of an LSH attention, each by the softmax of its logsumexp over the rounds.
// x (B, H, R, S, Ev + 2): results, highest score, sum of weights -> y (B, S, H, Ev).
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// x (B, H, R, S, Ev + 2) -> (B, S, H, Ev).
Result<Array> mix_rounds(const Array& x);

}  // namespace vkformer::reference
