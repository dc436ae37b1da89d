// What a model and one session will hold on a device, added up from plans before anything is made.
#pragma once

#include "checkpoint/file_store.h"
#include "vkformer/model.h"
#include "vulkan/device.h"

namespace vkformer {

// Reads configuration and tensor headers only; inputs are zeros of these sizes.
Result<MemoryNeeds> memory_needs_of(VulkanDevice& device, const FileStore& files,
                                    const ModelOptions& options, const SessionSizes& sizes);

}  // namespace vkformer
