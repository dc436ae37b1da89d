// Vulkan's handles in the C interface. Needs: c_support.h.
#pragma once

#include <map>
#include <string>

#include "c_api/support.h"
#include "vkformer/vulkan_interop.h"

namespace vkformer {

// A handle that is a pointer or a 64-bit integer, as the machine has it; hence the C cast.
template <class Handle>
Handle handle_from(uint64_t bits) {
  return (Handle)bits;
}

// By the names of tensors; a range without a name is refused.
std::map<std::string, BufferRange> buffer_ranges(const vkf_buffer_range* ranges, size_t count);

}  // namespace vkformer
