// How much more device memory may be allocated, for messages about what would fit.
#pragma once

#include <cstdint>

namespace vkformer {

class VulkanDevice;

// Bytes: of the memory budget, and of the largest heap where others use none of it.
uint64_t memory_left(const VulkanDevice& device);

}  // namespace vkformer
