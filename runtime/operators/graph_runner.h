// Runs one graph once: upload, record, submit, read back. What operators are run, tested and
// checked for conformance with; sessions keep their recordings instead.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "plan/device_caps.h"
#include "vkformer/export.h"
#include "vkformer/tensor.h"
#include "vulkan/device.h"

namespace vkformer {

struct GraphRunOptions {
  Precision precision = Precision::kF32;
  // Fill outputs and arena with NaN bit patterns before every run, so that an element nobody
  // writes, or an unwritten one somebody reads, shows.
  enum class Poison : uint8_t { kOff, kOn } poison = Poison::kOff;
  int repeats = 1;  // runs; all must give the same bits, else an error says where they differ
  // Every tensor, also of the arena, in its own buffer between words that nothing may change.
  enum class Guards : uint8_t { kOff, kOn } guards = Guards::kOff;
  // What to plan for in place of the device's own capabilities, which must include them.
  std::optional<DeviceCaps> caps;
  // kPlan: only what would run.
  enum class Until : uint8_t { kPlan, kRun } until = Until::kRun;
  uint32_t live_slots = UINT32_MAX;  // of a decoding step; at most, and usually, its row capacity
};

struct GraphRunReport {
  TensorMap outputs;           // every external tensor that some dispatch writes, by name
  double milliseconds = 0;     // median GPU time (timestamps, else wall clock) of one run
  uint64_t scratch_bytes = 0;  // of the arena
  int dispatches = 0;
  double flops = 0;               // of all dispatches
  double bytes = 0;               // likewise
  std::vector<KernelId> kernels;  // in the order of the dispatches
  std::string plan;               // its dump, where only the plan was asked for
};

// `inputs` binds external tensors by name; dtype and shape must be the graph's. External tensors
// that are not in it are outputs. Graphs with constants cannot be run this way.
VKFORMER_API Result<GraphRunReport> run_graph(const std::shared_ptr<VulkanDevice>& device,
                                              const Graph& graph, const TensorMap& inputs,
                                              const GraphRunOptions& options);

}  // namespace vkformer
