// Self-attention with WavLM's gated bias by distance (Chen et al., 2022, "WavLM"), inside the fused
// kernels (ops/attention.h). With h the input of the layer's attention, i a query and j a key:
//
//   score(i, j) = q_i . k_j / sqrt(E) + gate_i bias(j - i)
//   gate_i = a (b c - 1) + 2,   [a, b] = sigmoid(G h_i + g), head by head
//
// Queries get the gate as one more column, and the keys of positions the bias. A score is then one
// product of rows, and no bias is stored for pairs of tokens.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/blocks/stack.h"
#include "weights/weight_table.h"

namespace vkformer {

// Adds the rows of one layer's gate, `to`.gate.a, .b and .scale, from the attention module `from`.
Status add_gate_rows(const Checkpoint& checkpoint, const std::string& to, const std::string& from,
                     const StackConfig& stack, WeightTable& table);

// StackRun::attend of a pass. `distance` is the stack's bias before it is gated; it is not in
// `stack.distance`, which adds it as it is. `stack` outlives the pass.
Result<StackRun::Attend> gated_distance_attention(ModelBuilder& builder, const StackConfig& stack,
                                                  const DistanceBias& distance, int64_t tokens);

}  // namespace vkformer
