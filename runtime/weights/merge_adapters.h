// Adapters merged into the weights of a checkpoint. A weight that adapters change is computed from
// the model's and theirs whenever it is packed. Nothing is copied.
//
// Several adapters add up, each as it would change the model's own weights. A scale of 0 leaves an
// adapter out.
//
// Threading: pure functions.
// Lifetime: the checkpoint's tensors point to the adapters, which live as long.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/adapter_files.h"
#include "weights/weight_table.h"

namespace vkformer {

struct ScaledAdapter {
  std::shared_ptr<const AdapterFiles> files;
  float scale = 1;  // of all its modules
};

// Puts merged tensors in the place of the checkpoint's, and gives their names. Called again with
// other scales, it begins with the model's own weights. An error names the adapter, its module and
// what the model lacks.
Result<std::set<std::string>> merge_adapters(const WeightTable& table,
                                             const std::vector<ScaledAdapter>& adapters,
                                             Checkpoint& checkpoint);

}  // namespace vkformer
