// What a device can do (plan/device_caps.h) as JSON, so that plans can be made for it elsewhere.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/device_caps.h"

namespace vkformer::estimates {

// `vendor`: VkPhysicalDeviceProperties::vendorID. Without what the tuner found; kernels are named.
nlohmann::ordered_json caps_json(const DeviceCaps& caps, uint32_t vendor);
// The choices by vendor (plan/gpu_traits.h) are those of this build. A demoted kernel that this
// build does not have is passed over. Error: a field is missing or of another type.
Result<DeviceCaps> caps_from_json(const nlohmann::ordered_json& json);

}  // namespace vkformer::estimates
