// The statistics of compiled kernels for vkformer/benchmark.h: one name for what drivers call by
// many.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "vkformer/benchmark.h"
#include "vulkan/device.h"
#include "vulkan/executables.h"

namespace vkformer {

// `driver`: name and version, as DeviceInfo has it. A name that nobody knows stays in the raw ones.
CompilerStatistics normalize(const Executable& executable, std::string_view driver);

Result<std::vector<KernelStatistics>> read_kernel_statistics(
    const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
