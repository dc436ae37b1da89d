// Failed calls of Vulkan as errors.
#pragma once

#include <vulkan/vulkan_core.h>

#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer {

const char* vk_result_name(VkResult result);
// The error of a call on a device that is lost.
Error lost_error(std::string_view what, const std::string& device);
// The error of a failed call. `what` names the call and the object, in brackets.
Error vk_error(VkResult result, std::string_view what);

}  // namespace vkformer
