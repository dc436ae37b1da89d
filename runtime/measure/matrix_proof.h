// Whether a device's matrix units compute what they should: asked once, before anyone uses them.
#pragma once

#include <memory>

#include "plan/device_caps.h"
#include "vulkan/device.h"

namespace vkformer {

// Multiplies integers by every choice with matrix units that the table has for a device of these
// capabilities, and compares every bit. The capabilities are the device's own, or what a test makes
// of them. Likewise runs an attention whose queries choose keys, by every choice. A kernel that
// fails is omitted from all plans of this device from then on, with a note and a warning. To be
// called before the device is shared between threads.
void prove_matrix_units(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps);

}  // namespace vkformer
