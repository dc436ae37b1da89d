// Shows on the device itself that its arithmetic is that of reproducible precision.
#pragma once

#include <memory>

#include "base/check.h"
#include "vulkan/device.h"

namespace vkformer {

// Some thousand operands go through every operation that kernels use. All results must be those of
// HostArithmetic to the bit. This is tried with the execution modes that the device supports, then
// with denormals made zeros by integer operations. Once for a device; an error names the operation
// and the operands that came out differently.
Status prove_arithmetic(const std::shared_ptr<VulkanDevice>& device);

}  // namespace vkformer
