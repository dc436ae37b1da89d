// The calls that the layer counts: submits, waits, polls and copies. It passes each on unchanged.
#include "layer_state.h"

namespace vkformer::testing {
namespace {

// Signals of a semaphore whose submitter is remembered; a test waits for recent ones only.
constexpr size_t kKeptSignals = 4096;

// Remembered before the submit: another thread may wait for the value while the call returns.
void remember_signal(DeviceState& state, VkSemaphore semaphore, uint64_t value) {
  std::lock_guard<std::mutex> lock(state.mutex);
  auto& submitters = state.signals[semaphore];
  submitters[value] = thread_number();
  if (submitters.size() > kKeptSignals) submitters.erase(submitters.begin());
}

void remember_submit(DeviceState& state, VkFence fence, uint64_t command_buffers) {
  ledger().count([&](LayerCounts& c) {
    ++c.submits;
    c.command_buffers += command_buffers;
  });
  std::lock_guard<std::mutex> lock(state.mutex);
  if (fence != VK_NULL_HANDLE) state.fences[fence] = thread_number();
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue queue, uint32_t count,
                                           const VkSubmitInfo* submits, VkFence fence) {
  DeviceState& state = devices().of(queue);
  uint64_t buffers = 0;
  for (uint32_t i = 0; i < count; ++i) {
    buffers += submits[i].commandBufferCount;
    const auto* values = find_in_chain<VkTimelineSemaphoreSubmitInfo>(
        submits[i].pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    for (uint32_t k = 0; values != nullptr && k < values->signalSemaphoreValueCount; ++k) {
      remember_signal(state, submits[i].pSignalSemaphores[k], values->pSignalSemaphoreValues[k]);
    }
  }
  remember_submit(state, fence, buffers);
  return state.next.QueueSubmit(queue, count, submits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit2(VkQueue queue, uint32_t count,
                                            const VkSubmitInfo2* submits, VkFence fence) {
  DeviceState& state = devices().of(queue);
  uint64_t buffers = 0;
  for (uint32_t i = 0; i < count; ++i) {
    buffers += submits[i].commandBufferInfoCount;
    for (uint32_t k = 0; k < submits[i].signalSemaphoreInfoCount; ++k) {
      const VkSemaphoreSubmitInfo& signal = submits[i].pSignalSemaphoreInfos[k];
      remember_signal(state, signal.semaphore, signal.value);
    }
  }
  remember_submit(state, fence, buffers);
  return state.next.QueueSubmit2(queue, count, submits, fence);
}

// The thread whose submit reaches a value: the first signal that is not below it.
uint32_t submitter_of(DeviceState& state, VkSemaphore semaphore, uint64_t value) {
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto& submitters = state.signals[semaphore];
  const auto found = submitters.lower_bound(value);
  return found == submitters.end() ? 0 : found->second;
}

// The core function and the extension's share one body. A wait for several semaphores is told as
// one wait for each: a test asks for whose work a thread waited.
template <auto wait, auto counter>
VKAPI_ATTR VkResult VKAPI_CALL WaitForValues(VkDevice device, const VkSemaphoreWaitInfo* info,
                                             uint64_t timeout) {
  DeviceState& state = devices().of(device);
  for (uint32_t i = 0; timeout != 0 && i < info->semaphoreCount; ++i) {
    uint64_t now = 0;
    const VkResult asked = (state.next.*counter)(device, info->pSemaphores[i], &now);
    ledger().wait({.kind = LayerWait::Kind::kSemaphore,
                   .thread = thread_number(),
                   .submitter = submitter_of(state, info->pSemaphores[i], info->pValues[i]),
                   .reached = asked == VK_SUCCESS && now >= info->pValues[i] ? 1u : 0u,
                   .value = info->pValues[i]});
  }
  if (timeout == 0) ledger().count([](LayerCounts& c) { ++c.polls; });
  return (state.next.*wait)(device, info, timeout);
}

template <auto counter>
VKAPI_ATTR VkResult VKAPI_CALL CounterValue(VkDevice device, VkSemaphore semaphore,
                                            uint64_t* value) {
  ledger().count([](LayerCounts& c) { ++c.polls; });
  return (devices().of(device).next.*counter)(device, semaphore, value);
}

VKAPI_ATTR VkResult VKAPI_CALL WaitForFences(VkDevice device, uint32_t count, const VkFence* fences,
                                             VkBool32 all, uint64_t timeout) {
  DeviceState& state = devices().of(device);
  for (uint32_t i = 0; timeout != 0 && i < count; ++i) {
    const bool reached = state.next.GetFenceStatus(device, fences[i]) == VK_SUCCESS;
    uint32_t submitter = 0;
    {
      std::lock_guard<std::mutex> lock(state.mutex);
      submitter = state.fences[fences[i]];
    }
    ledger().wait({.kind = LayerWait::Kind::kFence,
                   .thread = thread_number(),
                   .submitter = submitter,
                   .reached = reached ? 1u : 0u});
  }
  if (timeout == 0) ledger().count([](LayerCounts& c) { ++c.polls; });
  return state.next.WaitForFences(device, count, fences, all, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL GetFenceStatus(VkDevice device, VkFence fence) {
  ledger().count([](LayerCounts& c) { ++c.polls; });
  return devices().of(device).next.GetFenceStatus(device, fence);
}

// These wait for the work of all threads, so they have no single submitter.
VKAPI_ATTR VkResult VKAPI_CALL QueueWaitIdle(VkQueue queue) {
  ledger().wait({.kind = LayerWait::Kind::kQueue, .thread = thread_number()});
  return devices().of(queue).next.QueueWaitIdle(queue);
}

VKAPI_ATTR VkResult VKAPI_CALL DeviceWaitIdle(VkDevice device) {
  ledger().wait({.kind = LayerWait::Kind::kDevice, .thread = thread_number()});
  return devices().of(device).next.DeviceWaitIdle(device);
}

void count_copy() {
  ledger().count([](LayerCounts& c) { ++c.copies; });
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                                         uint32_t count, const VkBufferCopy* ranges) {
  count_copy();
  devices().of(commands).next.CmdCopyBuffer(commands, from, to, count, ranges);
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer2(VkCommandBuffer commands, const VkCopyBufferInfo2* copy) {
  count_copy();
  devices().of(commands).next.CmdCopyBuffer2(commands, copy);
}

VKAPI_ATTR void VKAPI_CALL CmdUpdateBuffer(VkCommandBuffer commands, VkBuffer to,
                                           VkDeviceSize offset, VkDeviceSize bytes,
                                           const void* data) {
  count_copy();
  devices().of(commands).next.CmdUpdateBuffer(commands, to, offset, bytes, data);
}

}  // namespace

PFN_vkVoidFunction counted_replacement(const char* name) {
  using T = DeviceTable;
  static const Replacement kAll[] = {
      VKF_REPLACED(QueueSubmit),
      VKF_REPLACED(QueueSubmit2),
      VKF_REPLACED(QueueWaitIdle),
      VKF_REPLACED(DeviceWaitIdle),
      {"vkWaitSemaphores", erased(WaitForValues<&T::WaitSemaphores, &T::GetSemaphoreCounterValue>)},
      {"vkWaitSemaphoresKHR",
       erased(WaitForValues<&T::WaitSemaphoresKHR, &T::GetSemaphoreCounterValueKHR>)},
      {"vkGetSemaphoreCounterValue", erased(CounterValue<&T::GetSemaphoreCounterValue>)},
      {"vkGetSemaphoreCounterValueKHR", erased(CounterValue<&T::GetSemaphoreCounterValueKHR>)},
      VKF_REPLACED(WaitForFences),
      VKF_REPLACED(GetFenceStatus),
      VKF_REPLACED(CmdCopyBuffer),
      VKF_REPLACED(CmdCopyBuffer2),
      VKF_REPLACED(CmdUpdateBuffer),
  };
  return find_replacement(kAll, name);
}

}  // namespace vkformer::testing
