// What to tell those who have no Vulkan loader or no driver: which variables hide drivers, and
// which packages bring one.
#pragma once

#include <string_view>

#include "vkformer/result.h"

namespace vkformer {

// There is no loader of those names ("libvulkan.so.1, libvulkan.so").
Error missing_loader(std::string_view names);
// There is a loader, but no driver; `found` says what showed that.
Error missing_driver(std::string_view found);

}  // namespace vkformer
