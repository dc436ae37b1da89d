// How fast a device is at a step of a generation, by which a group shares out a model.
#pragma once

#include <memory>

#include "load/loaded_model.h"

namespace vkformer {

// The best of a few times on the host's clock, each of less than 0.1 s on a device of 1 GFLOP/s.
Result<DeviceSpeed> measure_speed(const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
