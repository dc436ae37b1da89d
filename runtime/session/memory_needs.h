// What a model and one session will hold on a device, added up from plans before anything is made.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "model/model.h"
#include "plan/device_caps.h"
#include "session/sized_graphs.h"
#include "vkformer/model.h"
#include "vulkan/device.h"

namespace vkformer {

// Adds up what the recordings of one session bind.
class MemoryTally {
 public:
  MemoryTally(VulkanDevice& device, Precision precision)
      : device_(device), precision_(precision), blocks_(device) {}

  // Of tensors that several passes share, one is counted.
  Status add(const SizedGraph& sized);
  // Prompt and step.
  Status add_generation(const ModelFamily& family, const std::vector<PackedWeight>& weights,
                        const GenerationKey& key);
  // Arena, cache, tensors, and the blocks through which the host reaches those.
  MemoryNeeds needs() const;

 private:
  VulkanDevice& device_;
  Precision precision_;
  MemoryNeeds needs_;
  HostBlockSizes blocks_;
  std::set<std::string> counted_;
};

// Reads configuration and tensor headers only; what inputs hold does not matter.
Result<MemoryNeeds> memory_needs_of(VulkanDevice& device, const FileStore& files,
                                    const ModelOptions& options, const SessionSizes& sizes);

}  // namespace vkformer
