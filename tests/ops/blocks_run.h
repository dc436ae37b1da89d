// Kernels of blocks of queries and keys, with every share of an invocation and of shared memory. It
// also has what runs one kernel of attention and no other.
#pragma once

#include "support/operator_check.h"

namespace vkformer::testing {

// The device as GPUs. They differ in the queries that an invocation may have, and in the shared
// memory. One has room for all of a tile's keys, the other for parts of them.
inline std::vector<DeviceCaps> gpus_of(const VulkanDevice& device) {
  std::vector<DeviceCaps> list;
  for (const uint32_t queries : {1u, 2u, 4u}) {
    for (const uint32_t shared : {16384u, 32768u}) {
      if (shared > device.caps().limits.max_shared_bytes) continue;
      DeviceCaps caps = device.caps();
      caps.device_class = DeviceClass::kIntegrated;
      caps.gpu.attention_queries = queries;
      caps.limits.max_shared_bytes = shared;
      list.push_back(caps);
    }
  }
  return list;
}

inline std::string text_of(const DeviceCaps& caps) {
  return std::to_string(caps.gpu.attention_queries) + " queries, " +
         std::to_string(caps.limits.max_shared_bytes) + " bytes";
}

// Output y, of that one kernel.
inline Tensor run_kernel(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                         const PreparedOperator& op, KernelId kernel,
                         Precision precision = Precision::kF32) {
  GraphRunOptions options;
  options.precision = precision;
  options.poison = GraphRunOptions::Poison::kOn;
  options.guards = GraphRunOptions::Guards::kOn;
  options.repeats = 2;
  options.caps = caps;
  auto report = run_graph(device, op.graph, op.inputs, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  CHECK(report->kernels == std::vector<KernelId>{kernel});
  return report->outputs.at("y");
}

}  // namespace vkformer::testing
