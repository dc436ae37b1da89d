// The memory of external tensors, by name, shared by the recordings of a pass.
#pragma once

#include <map>
#include <string>

#include "session/forward_inputs.h"
#include "session/loaded_model.h"

namespace vkformer {

class ExternalBuffers {
 public:
  // Makes sure that every external tensor of the plan has memory of at least its size.
  Status allocate(VulkanDevice& device, const Plan& plan);
  // The memory of every external and constant buffer of the plan.
  RecordingInputs bind(const Plan& plan, const LoadedModel& model) const;

  // Writes what depends on the shape only.
  Status upload_words(VulkanDevice& device, const Graph& graph,
                      const std::vector<HostWords>& words);
  // Writes the inputs of a run; an error names a feed that `words` lacks.
  Status upload_feeds(VulkanDevice& device, const Graph& graph, const std::vector<HostFeed>& feeds,
                      const FeedWords& words);

  Buffer& at(const std::string& name) { return *buffers_.at(name); }

  template <class T>
  Status upload(VulkanDevice& device, const std::string& name, std::span<const T> values) {
    return device.upload(at(name), 0, std::as_bytes(values));
  }

 private:
  // Buffers do not move: spans point at them.
  std::map<std::string, std::unique_ptr<Buffer>> buffers_;
};

}  // namespace vkformer
