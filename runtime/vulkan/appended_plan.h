// A plan made ready once, to be appended to the application's own command buffers.
#pragma once

#include <memory>

#include "vulkan/recording.h"

struct VkCommandBuffer_T;  // what a VkCommandBuffer points at

namespace vkformer {

class AppendedPlan {
 public:
  // Makes pipelines, the arena and descriptor sets.
  static Result<AppendedPlan> create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                     const RecordingInputs& inputs);
  AppendedPlan(AppendedPlan&&) noexcept;
  AppendedPlan& operator=(AppendedPlan&&) noexcept;
  // Precondition: nothing that it was appended to is still running.
  ~AppendedPlan();

  // One thread at a time. `commands` is being recorded, outside a render pass.
  Status append(VkCommandBuffer_T* commands);

 private:
  struct Impl;
  explicit AppendedPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace vkformer
