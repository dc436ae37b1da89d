// The Vulkan loader of the system, which the engine uses too.
#pragma once

#include <vkformer/vkformer.h>

namespace vkf_godot {

// vkGetInstanceProcAddr, or null.
vkf_any_function system_vulkan();

}  // namespace vkf_godot
