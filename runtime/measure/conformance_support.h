// What the conformance library needs of the runtime beside the public API and run_graph.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "plan/plan.h"
#include "vkformer/device.h"
#include "vkformer/export.h"

namespace vkformer {

VKFORMER_API const DeviceCaps& capabilities_of(const Device& device);

// Omits these kernels, and those omitted already, from every plan on this device and driver from
// now on. Returns the file that says so. An empty list takes all of that back. Plans that were made
// before stay as they are. An error where the device keeps no cache.
VKFORMER_API Result<std::string> demote_kernels(const Device& device,
                                                const std::vector<KernelId>& kernels);

// What a graph becomes on this device.
VKFORMER_API Result<Plan> plan_on(const Device& device, const Graph& graph);

// The SPIR-V of a kernel as this device runs it.
VKFORMER_API std::vector<uint32_t> spirv_on(const Device& device, KernelId kernel);

}  // namespace vkformer
