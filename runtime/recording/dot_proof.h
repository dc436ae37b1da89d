// Shows on the device itself that integer dot products give what they are defined as.
#pragma once

#include <memory>

#include "base/check.h"
#include "vulkan/device.h"

namespace vkformer {

// A small product of integers goes through each kernel of precision int8, with integer dot products
// and without. It must give the sums that the host computes. Where those without are right and
// those with them are not, the device goes on without, and its log says so. It is an error where
// neither is right. Once for a device; a device without integer dot products has nothing to show.
Status prove_dots(const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
