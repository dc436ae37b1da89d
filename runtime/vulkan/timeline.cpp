#include "vulkan/timeline.h"

#include <algorithm>

namespace vkformer {
namespace {

// Submits that may be in flight at once without timeline semaphores.
constexpr size_t kMaxFlights = 16;
// A submit holds at most this many of the longest dispatches.
constexpr double kDispatchesPerSubmit = 4;

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::create(Context& context, Kind kind) {
  std::unique_ptr<Timeline> self(new Timeline(context, kind));
  if (kind == Kind::kFences) return self;
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  info.pNext = &type;
  VKF_CHECK(
      context.check(context.api.CreateSemaphore(context.device, &info, nullptr, &self->semaphore_),
                    "[timeline] vkCreateSemaphore"));
  context.set_name(VK_OBJECT_TYPE_SEMAPHORE, handle_bits(self->semaphore_), "vkformer timeline");
  return self;
}

Timeline::~Timeline() {
  const DeviceApi& api = context_.api;
  if (semaphore_) api.DestroySemaphore(context_.device, semaphore_, nullptr);
  for (const Flight& flight : flights_) api.DestroyFence(context_.device, flight.fence, nullptr);
  for (VkFence fence : free_fences_) api.DestroyFence(context_.device, fence, nullptr);
}

// Moves signalled fences back; needs fence_mutex_. A fence that another thread waits on stays.
void Timeline::retire_finished() {
  while (!flights_.empty()) {
    const Flight& first = flights_.front();
    if (first.waiters > 0) return;
    if (context_.api.GetFenceStatus(context_.device, first.fence) != VK_SUCCESS) return;
    finished_ = std::max(finished_, first.value);
    free_fences_.push_back(first.fence);
    flights_.pop_front();
  }
}

Result<VkFence> Timeline::take_fence() {
  uint64_t oldest = 0;
  {
    std::lock_guard<std::mutex> lock(fence_mutex_);
    retire_finished();
    if (flights_.size() >= kMaxFlights) oldest = flights_.front().value;
  }
  if (oldest != 0) VKF_CHECK(wait_fence(oldest));
  std::lock_guard<std::mutex> lock(fence_mutex_);
  retire_finished();
  VkFence fence = VK_NULL_HANDLE;
  if (!free_fences_.empty()) {
    fence = free_fences_.back();
    VKF_CHECK(context_.check(context_.api.ResetFences(context_.device, 1, &fence),
                             "[timeline] vkResetFences"));
    free_fences_.pop_back();
    return fence;
  }
  VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VKF_CHECK(context_.check(context_.api.CreateFence(context_.device, &info, nullptr, &fence),
                           "[timeline] vkCreateFence"));
  return fence;
}

Status Timeline::submit_locked(std::span<const SubmitChunk> chunks, uint64_t value, VkFence fence) {
  const double limit = context_.caps.max_dispatch_flops * kDispatchesPerSubmit;
  std::vector<VkCommandBuffer> batch;
  size_t next = 0;
  do {
    batch.clear();
    double flops = 0;
    while (next < chunks.size() && (batch.empty() || flops + chunks[next].flops <= limit)) {
      flops += chunks[next].flops;
      batch.push_back(chunks[next++].commands);
    }
    const bool last = next == chunks.size();
    VkTimelineSemaphoreSubmitInfo signal{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    signal.signalSemaphoreValueCount = 1;
    signal.pSignalSemaphoreValues = &value;
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = static_cast<uint32_t>(batch.size());
    info.pCommandBuffers = batch.data();
    if (last && semaphore_) {
      info.pNext = &signal;
      info.signalSemaphoreCount = 1;
      info.pSignalSemaphores = &semaphore_;
    }
    const VkResult result =
        context_.api.QueueSubmit(context_.queue, 1, &info, last ? fence : VkFence{VK_NULL_HANDLE});
    if (result != VK_SUCCESS) {
      // Earlier batches of this call are in flight under no value; let them end here.
      if (next > batch.size()) context_.api.QueueWaitIdle(context_.queue);
      return context_.check(result, "[timeline] vkQueueSubmit");
    }
  } while (next < chunks.size());
  return {};
}

Result<uint64_t> Timeline::submit(std::span<const SubmitChunk> chunks) {
  VKF_CHECK(context_.check_alive());
  std::lock_guard<std::mutex> lock(context_.queue_mutex);
  VkFence fence = VK_NULL_HANDLE;
  if (kind_ == Kind::kFences) {
    VKF_ASSIGN(fence, take_fence());
  }
  const uint64_t value = last_.load() + 1;
  if (context_.queue_lock) context_.queue_lock();
  const Status status = submit_locked(chunks, value, fence);
  if (context_.queue_unlock) context_.queue_unlock();
  if (fence) {
    std::lock_guard<std::mutex> fences(fence_mutex_);
    if (status) {
      flights_.push_back({fence, value, 0});
    } else {
      free_fences_.push_back(fence);
    }
  }
  if (!status) return status.error();
  last_.store(value);
  return value;
}

Status Timeline::wait_fence(uint64_t value) {
  std::list<Flight>::iterator flight;
  {
    std::lock_guard<std::mutex> lock(fence_mutex_);
    if (value <= finished_) return {};
    flight = std::find_if(flights_.begin(), flights_.end(),
                          [&](const Flight& f) { return f.value >= value; });
    if (flight == flights_.end()) return {};
    ++flight->waiters;
  }
  const VkResult result =
      context_.api.WaitForFences(context_.device, 1, &flight->fence, VK_TRUE, UINT64_MAX);
  std::lock_guard<std::mutex> lock(fence_mutex_);
  --flight->waiters;
  if (result == VK_SUCCESS) finished_ = std::max(finished_, flight->value);
  return context_.check(result, "[timeline] vkWaitForFences");
}

Status Timeline::wait_semaphore(uint64_t value) {
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  return context_.check(context_.api.WaitSemaphores(context_.device, &info, UINT64_MAX),
                        "[timeline] vkWaitSemaphores");
}

Status Timeline::wait(uint64_t value) {
  VKF_CHECK(context_.check_alive());
  if (value == 0) return {};
  if (value > last_.load()) {
    return invalid_argument("[timeline] value " + std::to_string(value) +
                            " was never submitted; the last one is " +
                            std::to_string(last_.load()) + ", wait for that or an earlier one");
  }
  return kind_ == Kind::kSemaphore ? wait_semaphore(value) : wait_fence(value);
}

void Timeline::wait_idle() {
  // Its only failure is a lost device, on which nothing runs any more.
  (void)wait(last_.load());
}

}  // namespace vkformer
