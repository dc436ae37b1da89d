// One frame's command buffer, its fence and its timestamps.
#pragma once

#include <chrono>

#include "host/memory.h"

namespace sample {

// Moments of a frame that the GPU writes down.
enum class Moment : uint32_t { kBegin, kSliceDone, kEnd };
inline constexpr uint32_t kMoments = 3;

// Semaphores of a window that a frame waits for and signals; null off-screen.
struct FrameSemaphores {
  VkSemaphore wait = VK_NULL_HANDLE;
  VkSemaphore signal = VK_NULL_HANDLE;
};

class Frame {
 public:
  static vkformer::Result<Frame> create(const VulkanHost& host);

  // Starts recording.
  vkformer::Result<VkCommandBuffer> begin();
  void mark(Moment moment);
  // Submits and waits: this renderer has one frame at a time in flight. That keeps the sample short
  // and makes its times those of whole frames.
  vkformer::Status run(const FrameSemaphores& semaphores);

  // Milliseconds of the last frame by the clock, from begin() until the GPU was done.
  double total_ms() const { return total_ms_; }
  // Milliseconds between kBegin and kSliceDone on the GPU; 0 without timestamps.
  double slice_ms() const { return slice_ms_; }

 private:
  explicit Frame(const VulkanHost& host) : host_(&host) {}
  vkformer::Status make();

  const VulkanHost* host_;
  Owned<VkCommandPool> pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // of the pool
  Owned<VkFence> fence_;
  Owned<VkQueryPool> queries_;
  std::chrono::steady_clock::time_point begun_;
  double total_ms_ = 0.0, slice_ms_ = 0.0;
};

}  // namespace sample
