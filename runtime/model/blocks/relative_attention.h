// Self-attention with Transformer-XL's relative positions (Dai et al., 2019), inside the fused
// kernels (ops/attention.h):
//
//   score(i, j) = ((q_i + u) . k_j + (q_i + v) . W s(i - j)) / sqrt(E)
//   s(d) = [sin(d w_0), cos(d w_0), sin(d w_1), ...], w_k = 10000^(-2k/D)
//
// A pass projects the 2T - 1 distances that it has, and puts them after its queries, keys and
// values. Memory grows with T, and no score is kept.
#pragma once

#include <span>

#include "model/model.h"
#include "ops/attention.h"

namespace vkformer {

struct RelativeAttention {
  int64_t width = 0;   // D, even
  int64_t tokens = 0;  // T
  // Weight rows: tables u and v (H, E) and the projection W (H E, D) of positions.
  std::string u, v, positions;
};

// The elements of all parts, one after the other (1, elements).
Result<TensorId> add_joined(Graph& graph, std::span<const TensorId> parts);

// qkv (B, T, 3 D) with the positions after it (elements), as both q and kv of an attention, whose
// relative part `attrs` then names.
Result<TensorId> append_relative_positions(ModelBuilder& builder, const RelativeAttention& relative,
                                           TensorId qkv, AttentionAttrs& attrs);

}  // namespace vkformer
