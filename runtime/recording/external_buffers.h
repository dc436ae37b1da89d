// The memory of external tensors, by name, shared by the recordings of a pass: ours, or the
// application's.
#pragma once

#include <map>
#include <string>

#include "load/loaded_model.h"
#include "recording/forward_inputs.h"
#include "vulkan/slice_stream.h"

namespace vkformer {

// Where the application wants a tensor to lie.
struct TensorPlace {
  std::shared_ptr<Buffer> view;  // of the application's buffer
  uint64_t handle = 0;           // its bits, which tell views apart
  uint64_t offset = 0;           // bytes
  uint64_t bytes = 0;

  bool operator==(const TensorPlace& other) const {
    return handle == other.handle && offset == other.offset && bytes == other.bytes;
  }
};

class ExternalBuffers {
 public:
  // Before allocate: these tensors lie in the application's buffers.
  void place(const std::map<std::string, TensorPlace>& places) { places_ = places; }
  // Makes sure that every external tensor of the plan has memory of at least its size.
  Status allocate(VulkanDevice& device, const Plan& plan);
  // The memory of every external and constant buffer of the plan.
  RecordingInputs bind(const Plan& plan, const LoadedModel& model) const;

  // Writes what depends on the shape only.
  Status upload_words(VulkanDevice& device, const Graph& graph,
                      const std::vector<HostWords>& words);
  // Writes the inputs of a run; an error names a feed that `words` lacks. What the application
  // placed is not written.
  Status upload_feeds(VulkanDevice& device, const Graph& graph, const std::vector<HostFeed>& feeds,
                      const FeedWords& words);
  // The same as writes of a slice, which point into `words`.
  Result<std::vector<SliceWrite>> feed_writes(const Graph& graph,
                                              const std::vector<HostFeed>& feeds,
                                              const FeedWords& words) const;

  Buffer& at(const std::string& name) { return *buffers_.at(name); }
  bool placed(const std::string& name) const { return places_.count(name) != 0; }

 private:
  // Buffers do not move: spans point at them.
  std::map<std::string, std::unique_ptr<Buffer>> buffers_;
  std::map<std::string, TensorPlace> places_;
};

}  // namespace vkformer
