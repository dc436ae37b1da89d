// What a model and one session will hold on a device, added up from plans before anything is made.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "model/model.h"
#include "plan/device_caps.h"
#include "vkformer/model.h"
#include "vulkan/device.h"

namespace vkformer {

struct GenerationKey;

// Adds up what the recordings of one session bind.
class MemoryTally {
 public:
  MemoryTally(VulkanDevice& device, Precision precision) : device_(device), precision_(precision) {}

  // Of tensors that several passes share, one is counted.
  Status add(const Graph& graph);
  // Prompt and step.
  Status add_generation(const ModelFamily& family, const std::vector<PackedWeight>& weights,
                        const GenerationKey& key);
  // Arena, cache and tensors.
  const MemoryNeeds& needs() const { return needs_; }
  uint64_t bytes() const { return needs_.arena + needs_.cache + needs_.tensors; }

 private:
  VulkanDevice& device_;
  Precision precision_;
  MemoryNeeds needs_;
  std::set<std::string> counted_;
};

// Reads configuration and tensor headers only; what inputs hold does not matter.
Result<MemoryNeeds> memory_needs_of(VulkanDevice& device, const FileStore& files,
                                    const ModelOptions& options, const SessionSizes& sizes);

}  // namespace vkformer
