// Runs one graph once: upload, record, submit, read back. What operators are run and tested with;
// sessions keep their recordings instead.
#pragma once

#include <memory>

#include "graph/graph.h"
#include "plan/device_caps.h"
#include "vkformer/tensor.h"
#include "vulkan/device.h"

namespace vkformer {

struct GraphRunOptions {
  Precision precision = Precision::kF32;
  // Fill outputs and arena with NaN bit patterns before every run, so that an element nobody
  // writes, or an unwritten one somebody reads, shows.
  enum class Poison : uint8_t { kOff, kOn } poison = Poison::kOff;
  int repeats = 1;  // runs; all must give the same bits, else an error says where they differ
};

struct GraphRunReport {
  TensorMap outputs;           // every external tensor that was not an input, by name
  double milliseconds = 0;     // median GPU time (timestamps, else wall clock) of one run
  uint64_t scratch_bytes = 0;  // of the arena
  int dispatches = 0;
  double flops = 0;  // of all dispatches
  double bytes = 0;  // likewise
};

// `inputs` binds external tensors by name; dtype and shape must be the graph's. External tensors
// that are not in it are outputs. Graphs with constants cannot be run this way.
Result<GraphRunReport> run_graph(const std::shared_ptr<VulkanDevice>& device, const Graph& graph,
                                 const TensorMap& inputs, const GraphRunOptions& options);

}  // namespace vkformer
