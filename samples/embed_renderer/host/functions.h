// The Vulkan functions that this renderer calls, found through the loader it opened itself.
#pragma once

#include <vulkan/vulkan_core.h>

namespace sample {

struct Functions {
#define SAMPLE_FUNCTION(name) PFN_vk##name name = nullptr;
#include "host/functions.def"
#undef SAMPLE_FUNCTION
};

}  // namespace sample
