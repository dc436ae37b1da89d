// Biases of scores by the distance from query to key. A checkpoint stores them by bucket, as T5
// (Raffel et al., 2020) does. They are read once at load, for all layers of a stack.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/blocks/stack.h"
#include "ops/relative_positions.h"

namespace vkformer {

// A tensor (rows, H) of biases by bucket. Buckets beyond `t5.buckets` may follow.
struct BucketTable {
  std::string tensor;
  int64_t rows = 0;  // 0: t5.buckets
  T5Buckets t5;
};

// Fills stack.distance with the bias of every distance up to the one from which on all share the
// last bucket. If these are too many, the error is kUnsupported. Else it is that of a missing or
// misshaped tensor.
Status read_distance_bias(const Checkpoint& checkpoint, const BucketTable& table,
                          StackConfig& stack);

}  // namespace vkformer
