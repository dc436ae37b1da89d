// Self-attention with Transformer-XL's relative positions (Dai et al., 2019):
//
//   score(i, j) = ((q_i + u) . k_j + (q_i + v) . W s(i - j)) / sqrt(E)
//   s(d) = [sin(d w_0), cos(d w_0), sin(d w_1), ...], w_k = 10000^(-2k/D)
//
// Since sines of a difference are products of sines, (q_i + v) . W s(i - j) is p_i, which is W^T
// (q_i + v) turned by i like a rotary embedding, times a vector of j alone: no table of distances
// and no shift of rows is needed. The scores (H, B, T, T) are kept, because no fused kernel takes a
// head of E + D columns.
#pragma once

#include "model/model.h"

namespace vkformer {

struct RelativeAttention {
  int64_t width = 0;  // D, even
  int64_t heads = 0;  // H
  // Weight rows: tables u and v (H, E) and the projection W (H E, D) of positions.
  std::string u, v, positions;

  int64_t head() const { return width / heads; }
};

struct RelativeRun {
  int64_t batch = 0;          // B
  int64_t tokens = 0;         // T
  TensorId qkv = kNoTensor;   // (B, T, 3 D), [q | k | v] with heads side by side; its shape changes
  TensorId mask = kNoTensor;  // key mask (B ceil(T/32)) words, U32, or none
  std::string map;            // of the attention map that is handed out; empty: none
  ForwardTaps taps = {};
};

// (B, T, D), before the output projection.
Result<TensorId> add_relative_attention(ModelBuilder& builder, const RelativeAttention& attention,
                                        const RelativeRun& run);

}  // namespace vkformer
