// The places of a model between which it can be cut, with what a step does and holds at each.
#pragma once

#include "load/loaded_model.h"
#include "load/split_plan.h"

namespace vkformer {

// By the graphs of the model's passes, before any weight is read. An error where no number of
// tokens says how large a pass is.
Result<std::vector<SplitPlace>> split_places(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights);

}  // namespace vkformer
