// mix_rounds: the rounds of an LSH attention as one result. Each is weighed by the softmax over the
// rounds of its logsumexp (Kitaev, Kaiser and Levskaya 2020).
//
//   x (B, H, R, S, Ev + 2), as chunk_attention leaves it -> y (B, S, H * Ev)
#pragma once

#include "ops/op.h"

namespace vkformer {

struct MixRoundsAttrs {};

// The output's description, or why the input does not fit: x (B, H, R, S, Ev + 2).
Result<TensorDesc> check_mix_rounds(const TensorDesc& x);

// Adds the node to the graph, x (B, H, R, S, Ev + 2), and returns y (B, S, H * Ev).
Result<TensorId> add_mix_rounds(Graph& graph, TensorId x);

Status lower_mix_rounds(LowerContext& context, const Node& node);

}  // namespace vkformer
