// Parts of a batch that run beside each other on a model that is split, so that its members work at
// the same time. While one part is at the second member's layers, the next is at the first's.
#pragma once

#include <functional>
#include <vector>

#include "base/check.h"
#include "load/loaded_model.h"
#include "vkformer/tensor.h"

namespace vkformer {

// Rows [begin, end) of a batch.
struct LaneRows {
  int64_t begin = 0, end = 0;
};

// The parts of these inputs. There is at most one where they run together. That holds for a model
// on one device, one row, inputs that are no rows, and passes whose rows depend on each other.
std::vector<LaneRows> lanes_of_inputs(const LoadedModel& model, const TensorMap& inputs);

// Those rows of every tensor.
TensorMap rows_of(const TensorMap& inputs, const LaneRows& rows);
// Results of parts, one after the other; an error if a tensor has no row for each input.
Result<TensorMap> join_rows(std::vector<TensorMap> parts, const std::vector<LaneRows>& rows);

// Calls `work` for each lane, each on its own thread. The first error, if there is one.
Status run_lanes(size_t lanes, const std::function<Status(size_t lane)>& work);

}  // namespace vkformer
