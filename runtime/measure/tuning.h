// The tuner of vkformer/tuning.h.
#pragma once

#include <memory>

#include "vkformer/tuning.h"
#include "vulkan/device.h"

namespace vkformer {

Result<TuneReport> tune_matmul(const std::shared_ptr<VulkanDevice>& device,
                               const TuneOptions& options);

}  // namespace vkformer
