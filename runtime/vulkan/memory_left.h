// How much more device memory may be allocated, for messages about what would fit.
#pragma once

#include <cstdint>

namespace vkformer {

class VulkanDevice;

// Bytes: of the memory budget, and of the largest heap where others use none of it.
uint64_t memory_left(const VulkanDevice& device);

// Whether device memory and host memory are the same heap.
bool shares_host_memory(const VulkanDevice& device);

// Bytes of weights that fit into device memory and leave a tenth of what is free there to passes.
// UINT64_MAX where host memory is the same heap. What other programs use counts where the driver
// has VK_EXT_memory_budget.
uint64_t weight_room(const VulkanDevice& device);

}  // namespace vkformer
