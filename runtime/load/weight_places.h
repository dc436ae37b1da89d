// Which weights stay in host memory, where device memory is to hold only a part of them.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "weights/weight_table.h"

namespace vkformer {

// By weight: whether it lies in host memory, so that the others take at most `most_bytes`. The
// matrices of experts go first, since a token reads few of them. Then come whole layers. Both go
// from the last layer on. What stands outside of layers goes last. `held`: the weights that count;
// empty: all.
std::vector<bool> weights_in_host_memory(const std::vector<PackedWeight>& weights,
                                         const std::vector<bool>& held, uint64_t most_bytes);

}  // namespace vkformer
