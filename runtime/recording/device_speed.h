// How fast a device multiplies, by which a group shares out a model.
#pragma once

#include <memory>

#include "load/loaded_model.h"

namespace vkformer {

// GFLOP/s of a product of a few rows with a matrix, the best of three times on the host's clock.
Result<double> product_speed(const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
