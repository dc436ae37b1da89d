// chunk_attention: attention of every chunk of tokens to itself and its neighbors, cyclically over
// all chunks. It is the local and the LSH attention of Kitaev, Kaiser and Levskaya 2020 (Reformer).
// Linear in the tokens. Rows may be sorted by `order`, in several rounds; chunks then run through
// all of them, one round after the other.
//
//   q, k (B, H, S, E), v (B, H, S, Ev) in one tensor by HeadLayouts, order (B, H, R, S),
//   mask (B, ceil(S/32)) words -> y
//
// One round: y (B, S, H * Ev). Several: y (B, H, R, S, Ev + 2), each row's result, highest score
// and sum of weights, for mix_rounds. A query without an allowed key gives zeros.
#pragma once

#include "ops/op.h"
#include "params/attention.h"

namespace vkformer {

struct ChunkAttentionAttrs {
  uint32_t batch = 1;        // B
  uint32_t heads = 1;        // H
  uint32_t tokens = 1;       // S
  uint32_t head_width = 1;   // E
  uint32_t value_width = 1;  // Ev
  uint32_t rounds = 1;       // R
  uint32_t chunk = 1;        // tokens of a chunk, a divisor of S
  uint32_t before = 0;       // chunks before its own that a query sees
  uint32_t after = 0;        // and after it
  HeadLayout q{};
  HeadLayout k{};
  HeadLayout v{};
  enum class Causal : uint8_t { kNo, kYes } causal = Causal::kNo;
  // kQueries: k is q, and a key is k / sqrt(mean k^2 + 1e-6). A token then sees itself only where
  // it sees no other (score -1e5), which is how LSH attention with shared queries and keys works.
  enum class Keys : uint8_t { kOwn, kQueries } keys = Keys::kOwn;
};

struct ChunkAttentionInputs {
  TensorId x = kNoTensor;      // holds q, k (B, H, S, E) and v (B, H, S, Ev)
  TensorId order = kNoTensor;  // (B, H, R, S), U32, positions; or absent: as they stand
  TensorId mask = kNoTensor;   // (B, ceil(S/32)) words, keys that may be seen; or absent: all
};

// The output's description, or why the inputs do not fit: x by the layouts; order (B, H, R, S) or
// null.
Result<TensorDesc> check_chunk_attention(const TensorDesc& x, const TensorDesc* order,
                                         const ChunkAttentionAttrs& attrs);

// Adds the node to the graph and returns y (B, S, H * Ev), or (B, H, R, S, Ev + 2).
Result<TensorId> add_chunk_attention(Graph& graph, const ChunkAttentionInputs& inputs,
                                     const ChunkAttentionAttrs& attrs);

Status lower_chunk_attention(LowerContext& context, const Node& node);

}  // namespace vkformer
