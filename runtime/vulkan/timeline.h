// The device's timeline: a 64-bit counter that every submission advances, backed by a timeline
// semaphore or, without one, by fences.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "vulkan/context.h"

namespace vkformer {

// A command buffer and what it costs, so that submits stay short.
struct SubmitChunk {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  double flops = 0;
};

struct SubmitSemaphores;

class Timeline {
 public:
  enum class Kind : uint8_t { kSemaphore, kFences };
  static Result<std::unique_ptr<Timeline>> create(Context& context, Kind kind);
  // Precondition: nothing is in flight (wait for last_submitted first).
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Submits the chunks in order, in as few vkQueueSubmit as the device's dispatch limit allows;
  // returns the value that the last one signals. The first waits for the semaphores given, the
  // last signals them.
  Result<uint64_t> submit(std::span<const SubmitChunk> chunks,
                          const SubmitSemaphores* semaphores = nullptr);
  // Blocks until `value` is reached; 0 is reached from the start.
  Status wait(uint64_t value);
  // Whether `value` is reached, without waiting.
  bool reached(uint64_t value);
  uint64_t last_submitted() const { return last_.load(); }
  // Waits for `value` before what the device may be using is given back or written over. It goes on
  // waiting where a driver without memory fails to. A lost device counts as finished.
  void settle(uint64_t value);
  // The same for everything submitted so far.
  void wait_idle();

 private:
  struct Flight {
    VkFence fence = VK_NULL_HANDLE;
    uint64_t value = 0;
    int waiters = 0;
  };
  Timeline(Context& context, Kind kind) : context_(context), kind_(kind) {}
  Result<VkFence> take_fence();
  Status submit_locked(std::span<const SubmitChunk> chunks, uint64_t value, VkFence fence,
                       const SubmitSemaphores& semaphores);
  Status wait_fence(uint64_t value);
  Status wait_semaphore(uint64_t value);
  void retire_finished();
  template <class Wait>
  void persist(const Wait& wait);

  Context& context_;
  Kind kind_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> reached_{0};  // known to be; host copies ask for it again and again
  // Fences, guarded by fence_mutex_. Flights are in ascending order of value.
  std::mutex fence_mutex_;
  std::list<Flight> flights_;
  std::vector<VkFence> free_fences_;
  uint64_t finished_ = 0;
};

}  // namespace vkformer
