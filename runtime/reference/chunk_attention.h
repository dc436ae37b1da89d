// chunk_attention: every chunk of the (sorted) tokens attends to itself and its neighbors,
// cyclically over all chunks of all rounds (Kitaev, Kaiser and Levskaya 2020).
// q, k (B, H, S, E), v (B, H, S, Ev) -> results (B, H, R, S, Ev + 2). These are each row's result,
// highest score and sum of weights.
// Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct ChunkAttentionOptions {
  int64_t chunk = 1;             // tokens
  int64_t before = 0;            // chunks
  int64_t after = 0;             // chunks
  bool causal = false;           // keys at or before the query's position only
  bool shared = false;           // keys are queries of length 1; a token hardly sees itself
  const Array* order = nullptr;  // (B, H, R, S), positions; absent: one round, as they stand
  const Array* mask = nullptr;   // (B, S), 1 = a key that may be seen
};

// q, k (B, H, S, E), v (B, H, S, Ev) -> (B, H, R, S, Ev + 2).
Result<Array> chunk_attention(const Array& q, const Array& k, const Array& v,
                              const ChunkAttentionOptions& options);

}  // namespace vkformer::reference
