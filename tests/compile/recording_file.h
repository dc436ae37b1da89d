// Pipelines in a file: everything that a driver needs to compile them, without the planner. JSON:
//
//   format       "vkformer pipelines 2"
//   device       the one for which the planner chose them
//   kernels      by name: spirv (an array of 32-bit words), subgroup_size (that pipelines require;
//                0: any)
//   pipelines    kernel, constants (values in the order of their ids), for, groups, flops (of that
//                dispatch), benchmark, chosen, model
//
// Layouts and push constants are what the SPIR-V declares.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compile/planned.h"
#include "vulkan/context.h"

namespace vkformer::compile {

struct RecordedPipelines {
  nlohmann::ordered_json device;
  PlantedKernels kernels;
  std::map<KernelId, uint32_t> subgroup_sizes;
  std::vector<PlannedPipeline> pipelines;
};

Status write_recording(const std::string& path, const VulkanDevice& device,
                       const std::vector<PlannedPipeline>& pipelines);
// A file may come from anywhere. An error names the place in it.
Result<RecordedPipelines> read_recording(const std::string& path);
// The same of its text; `name` stands for the path in messages.
Result<RecordedPipelines> parse_recording(std::string_view text, const std::string& name);

// The size of subgroups that a device's pipelines of a kernel require; 0: any.
uint32_t required_subgroup_size(const Context& context, KernelId kernel);

}  // namespace vkformer::compile
