#include "vulkan/timeline.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/message.h"
#include "vulkan/slice_stream.h"

namespace vkformer {
namespace {

// Submits that may be in flight at once without timeline semaphores.
constexpr size_t kMaxFlights = 16;

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::create(Context& context, Kind kind) {
  std::unique_ptr<Timeline> self(new Timeline(context, kind));
  if (kind == Kind::kFences) return self;
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  info.pNext = &type;
  VKF_CHECK(context.check_made(
      context.api.CreateSemaphore(context.device, &info, context.allocator, &self->semaphore_),
      self->semaphore_, "[timeline] vkCreateSemaphore"));
  context.set_name(VK_OBJECT_TYPE_SEMAPHORE, handle_bits(self->semaphore_), "vkformer timeline");
  return self;
}

Timeline::~Timeline() {
  const DeviceApi& api = context_.api;
  if (semaphore_) api.DestroySemaphore(context_.device, semaphore_, context_.allocator);
  for (const Flight& flight : flights_)
    api.DestroyFence(context_.device, flight.fence, context_.allocator);
  for (VkFence fence : free_fences_) api.DestroyFence(context_.device, fence, context_.allocator);
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
  VKF_CHECK(
      context_.check(context_.api.CreateFence(context_.device, &info, context_.allocator, &fence),
                     "[timeline] vkCreateFence"));
  return fence;
}

namespace {

// VkSubmitInfo with the semaphores of its batch. Does not move: it points into itself.
class Batch {
 public:
  void wait(const SubmitSemaphores& semaphores) {
    for (uint64_t bits : semaphores.wait_handles) waits_.push_back((VkSemaphore)bits);
    wait_values_ = semaphores.wait_values;
    wait_values_.resize(waits_.size());
    stages_.assign(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  }
  void signal(VkSemaphore semaphore, uint64_t value) {
    signals_.push_back(semaphore);
    signal_values_.push_back(value);
  }
  const VkSubmitInfo& info(const std::vector<VkCommandBuffer>& commands, bool timelines) {
    info_.waitSemaphoreCount = static_cast<uint32_t>(waits_.size());
    info_.pWaitSemaphores = waits_.data();
    info_.pWaitDstStageMask = stages_.data();
    info_.commandBufferCount = static_cast<uint32_t>(commands.size());
    info_.pCommandBuffers = commands.data();
    info_.signalSemaphoreCount = static_cast<uint32_t>(signals_.size());
    info_.pSignalSemaphores = signals_.data();
    values_.waitSemaphoreValueCount = info_.waitSemaphoreCount;
    values_.pWaitSemaphoreValues = wait_values_.data();
    values_.signalSemaphoreValueCount = info_.signalSemaphoreCount;
    values_.pSignalSemaphoreValues = signal_values_.data();
    if (timelines) info_.pNext = &values_;
    return info_;
  }

 private:
  VkSubmitInfo info_{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  VkTimelineSemaphoreSubmitInfo values_{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  std::vector<VkSemaphore> waits_, signals_;
  std::vector<VkPipelineStageFlags> stages_;
  std::vector<uint64_t> wait_values_, signal_values_;
};

Status check_binary(const SubmitSemaphores& semaphores) {
  for (const auto* values : {&semaphores.wait_values, &semaphores.signal_values}) {
    for (uint64_t value : *values) {
      if (value == 0) continue;
      return unsupported(message({"[submit] a semaphore has the value ", value,
                                  ", but timelineSemaphore is not enabled on this device; enable "
                                  "it, or use binary semaphores"}));
    }
  }
  return {};
}

}  // namespace

Status Timeline::submit_locked(std::span<const SubmitChunk> chunks, uint64_t value, VkFence fence,
                               const SubmitSemaphores& semaphores) {
  const double limit = context_.caps.max_dispatch_flops * kDispatchesPerSubmit;
  std::vector<VkCommandBuffer> commands;
  size_t next = 0;
  do {
    commands.clear();
    Batch batch;
    if (next == 0) batch.wait(semaphores);
    double flops = 0;
    while (next < chunks.size() && (commands.empty() || flops + chunks[next].flops <= limit)) {
      flops += chunks[next].flops;
      commands.push_back(chunks[next++].commands);
    }
    const bool last = next == chunks.size();
    if (last) {
      if (semaphore_) batch.signal(semaphore_, value);
      for (size_t i = 0; i < semaphores.signal_handles.size(); ++i) {
        batch.signal((VkSemaphore)semaphores.signal_handles[i], semaphores.signal_values[i]);
      }
    }
    const VkResult result =
        context_.api.QueueSubmit(context_.queue, 1, &batch.info(commands, semaphore_ != nullptr),
                                 last ? fence : VkFence{VK_NULL_HANDLE});
    if (result != VK_SUCCESS) {
      // Earlier batches of this call are in flight under no value; let them end here.
      if (next > commands.size() && result != VK_ERROR_DEVICE_LOST) {
        persist([&] {
          return context_.check(context_.api.QueueWaitIdle(context_.queue),
                                "[timeline] vkQueueWaitIdle");
        });
      }
      return context_.check(result, "[timeline] vkQueueSubmit");
    }
  } while (next < chunks.size());
  return {};
}

Result<uint64_t> Timeline::submit(std::span<const SubmitChunk> chunks,
                                  const SubmitSemaphores* semaphores) {
  VKF_CHECK(context_.check_alive());
  if (semaphores && kind_ == Kind::kFences) VKF_CHECK(check_binary(*semaphores));
  std::lock_guard<std::mutex> lock(context_.queue_mutex);
  VkFence fence = VK_NULL_HANDLE;
  if (kind_ == Kind::kFences) {
    VKF_ASSIGN(fence, take_fence());
  }
  const uint64_t value = last_.load() + 1;
  if (context_.queue_lock) context_.queue_lock();
  const Status status =
      submit_locked(chunks, value, fence, semaphores ? *semaphores : SubmitSemaphores{});
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
  if (value <= reached_.load()) return {};
  if (value > last_.load()) {
    return invalid_argument(
        message({"[timeline] value ", value, " was never submitted; the last one is ", last_.load(),
                 ", wait for that or an earlier one"}));
  }
  VKF_CHECK(kind_ == Kind::kSemaphore ? wait_semaphore(value) : wait_fence(value));
  uint64_t seen = reached_.load();
  while (seen < value && !reached_.compare_exchange_weak(seen, value)) {
  }
  return {};
}

bool Timeline::reached(uint64_t value) {
  if (value <= reached_.load()) return true;
  if (kind_ == Kind::kFences) {
    const std::lock_guard<std::mutex> lock(fence_mutex_);
    retire_finished();
    return value <= finished_;
  }
  uint64_t now = 0;
  const VkResult asked = context_.api.GetSemaphoreCounterValue(context_.device, semaphore_, &now);
  // A lost device is latched, so that a caller that polls learns of it.
  return context_.check(asked, "[timeline] vkGetSemaphoreCounterValue") && value <= now;
}

// Repeats a wait that a driver without memory cannot carry out. Where it never can, the device
// counts as lost.
template <class Wait>
void Timeline::persist(const Wait& wait) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (wait() || context_.lost.load()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // Latches and says so; what asked for the wait goes on as after any loss.
  (void)context_.check(VK_ERROR_DEVICE_LOST, "[timeline] a wait that failed again and again");
}

void Timeline::settle(uint64_t value) {
  persist([&] { return wait(value); });
}

void Timeline::wait_idle() {
  settle(last_.load());
}

}  // namespace vkformer
