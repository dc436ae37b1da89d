// The multi-head attention block of Vaswani et al. 2017: project, attend, merge, project back.
//
//   [q | k | v] = x Wqkv^T + b, y = merge(attention(q, k, v)) Wo^T + bo
//
// One projection gives q, k and v, so that k and v lie in one binding. Separate matrices are
// stacked into it where weights are loaded. One small matrix per role, shared by all heads, is
// stacked to (3 E, E) and applied to every head of x.
#pragma once

#include "ops/attention.h"
#include "ops/matmul.h"

namespace vkformer {

// A linear layer, either packed at load or as plain tensors of the graph.
struct AttentionProjection {
  LinearWeight packed;          // used where packed.tensor is set
  TensorId weight = kNoTensor;  // (N, K)
  TensorId bias = kNoTensor;    // (N), or none

  bool present() const { return packed.tensor != kNoTensor || weight != kNoTensor; }
};

struct MultiHeadAttentionBlock {
  enum class Projection : uint8_t {
    kMerged,         // qkv (3 D, D); x (B, T, D)
    kSharedByHeads,  // qkv (3 E, E); x seen as (B * T * H, E)
  };
  enum class Weights : uint8_t { kDrop, kKeep };

  Projection projection = Projection::kMerged;
  uint32_t batch = 1;       // B
  uint32_t tokens = 1;      // T
  uint32_t heads = 1;       // H
  uint32_t head_width = 1;  // E
  AttentionProjection qkv;
  AttentionProjection output;  // (D, D); absent: the merged heads are the output
  TensorId terms = kNoTensor;  // masks and biases (words), U32, or none
  ScoreTermsParams terms_params = no_score_terms();
  std::optional<float> scale;  // of q.k; absent: 1 / sqrt(E)
  Weights weights = Weights::kDrop;
};

struct MultiHeadAttentionTensors {
  TensorId output = kNoTensor;   // (B, T, D)
  TensorId weights = kNoTensor;  // (B, H, T, T), with Weights::kKeep
};

// Adds the block's nodes. x (B, T, D), or (B * T * H, E) with kSharedByHeads.
Result<MultiHeadAttentionTensors> add_multi_head_attention(Graph& graph, TensorId x,
                                                           const MultiHeadAttentionBlock& block);

}  // namespace vkformer
