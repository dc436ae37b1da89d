// A table of Vulkan entry points that fails on demand and counts live objects. Everything vkformer
// calls is looked up through one vkGetInstanceProcAddr. This one hands out functions that count and
// fail the n-th call with a chosen VkResult. Else they call the driver. One table a process: entry
// points carry no pointer to it.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace vkformer::testing {

// Calls that may fail, with the errors that the specification (1.3.239) lists for them in what
// vkformer enables. Those with VK_ERROR_DEVICE_LOST go on failing once a device was lost.
#define VKF_OUT_OF_MEMORY VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY
#define VKF_FAILING_CALLS(X)                                                                       \
  X(CreateInstance, VKF_OUT_OF_MEMORY, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT, \
    VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER)                                  \
  X(EnumeratePhysicalDevices, VKF_OUT_OF_MEMORY, VK_ERROR_INITIALIZATION_FAILED)                   \
  X(EnumerateDeviceExtensionProperties, VKF_OUT_OF_MEMORY, VK_ERROR_LAYER_NOT_PRESENT)             \
  X(CreateDevice, VKF_OUT_OF_MEMORY, VK_ERROR_INITIALIZATION_FAILED,                               \
    VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_FEATURE_NOT_PRESENT, VK_ERROR_TOO_MANY_OBJECTS,       \
    VK_ERROR_DEVICE_LOST)                                                                          \
  X(DeviceWaitIdle, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                       \
  X(QueueSubmit, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                          \
  X(QueueWaitIdle, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                        \
  X(AllocateMemory, VKF_OUT_OF_MEMORY, VK_ERROR_TOO_MANY_OBJECTS)                                  \
  X(MapMemory, VKF_OUT_OF_MEMORY, VK_ERROR_MEMORY_MAP_FAILED)                                      \
  X(CreateBuffer, VKF_OUT_OF_MEMORY)                                                               \
  X(BindBufferMemory, VKF_OUT_OF_MEMORY)                                                           \
  X(CreateFence, VKF_OUT_OF_MEMORY)                                                                \
  X(ResetFences, VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                    \
  X(GetFenceStatus, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                       \
  X(WaitForFences, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                        \
  X(CreateSemaphore, VKF_OUT_OF_MEMORY)                                                            \
  X(WaitSemaphores, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                                       \
  X(GetSemaphoreCounterValue, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)                             \
  X(CreateShaderModule, VKF_OUT_OF_MEMORY, VK_ERROR_INVALID_SHADER_NV)                             \
  X(CreateDescriptorSetLayout, VKF_OUT_OF_MEMORY)                                                  \
  X(CreatePipelineLayout, VKF_OUT_OF_MEMORY)                                                       \
  X(CreateComputePipelines, VKF_OUT_OF_MEMORY, VK_ERROR_INVALID_SHADER_NV,                         \
    VK_PIPELINE_COMPILE_REQUIRED_EXT)                                                              \
  X(CreatePipelineCache, VKF_OUT_OF_MEMORY)                                                        \
  X(GetPipelineCacheData, VKF_OUT_OF_MEMORY, VK_INCOMPLETE)                                        \
  X(CreateDescriptorPool, VKF_OUT_OF_MEMORY, VK_ERROR_FRAGMENTATION_EXT)                           \
  X(AllocateDescriptorSets, VKF_OUT_OF_MEMORY, VK_ERROR_FRAGMENTED_POOL,                           \
    VK_ERROR_OUT_OF_POOL_MEMORY)                                                                   \
  X(CreateCommandPool, VKF_OUT_OF_MEMORY)                                                          \
  X(ResetCommandPool, VK_ERROR_OUT_OF_DEVICE_MEMORY)                                               \
  X(AllocateCommandBuffers, VKF_OUT_OF_MEMORY)                                                     \
  X(BeginCommandBuffer, VKF_OUT_OF_MEMORY)                                                         \
  X(EndCommandBuffer, VKF_OUT_OF_MEMORY)                                                           \
  X(CreateQueryPool, VKF_OUT_OF_MEMORY)                                                            \
  X(GetQueryPoolResults, VKF_OUT_OF_MEMORY, VK_ERROR_DEVICE_LOST)

// Calls that end an object, with the call that made it.
#define VKF_ENDING_CALLS(X)                                \
  X(DestroyInstance, CreateInstance)                       \
  X(DestroyDevice, CreateDevice)                           \
  X(FreeMemory, AllocateMemory)                            \
  X(DestroyBuffer, CreateBuffer)                           \
  X(DestroyFence, CreateFence)                             \
  X(DestroySemaphore, CreateSemaphore)                     \
  X(DestroyShaderModule, CreateShaderModule)               \
  X(DestroyDescriptorSetLayout, CreateDescriptorSetLayout) \
  X(DestroyPipelineLayout, CreatePipelineLayout)           \
  X(DestroyPipeline, CreateComputePipelines)               \
  X(DestroyPipelineCache, CreatePipelineCache)             \
  X(DestroyDescriptorPool, CreateDescriptorPool)           \
  X(DestroyCommandPool, CreateCommandPool)                 \
  X(DestroyQueryPool, CreateQueryPool)

#define VKF_NAME(name, ...) k##name,
enum class Call : uint8_t { VKF_FAILING_CALLS(VKF_NAME) kCount };
#undef VKF_NAME
constexpr size_t kCalls = static_cast<size_t>(Call::kCount);

#define VKF_NAME(name, ...) "vk" #name,
constexpr std::array<const char*, kCalls> kCallNames = {VKF_FAILING_CALLS(VKF_NAME)};
#undef VKF_NAME

inline const std::vector<VkResult>& errors_of(Call call) {
#define VKF_ERRORS(name, ...) std::vector<VkResult>{__VA_ARGS__},
  static const std::array<std::vector<VkResult>, kCalls> kErrors = {VKF_FAILING_CALLS(VKF_ERRORS)};
#undef VKF_ERRORS
  return kErrors[static_cast<size_t>(call)];
}

class FaultTable {
 public:
  using Counts = std::array<uint64_t, kCalls>;

  static FaultTable& get() {
    static FaultTable table;
    return table;
  }

  // What DeviceTweaks::get_instance_proc_addr takes.
  static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance_proc_addr(VkInstance instance,
                                                                         const char* name);

  // The n-th call (from 1) from now on fails, and all after it where `repeated`.
  enum class Repeat : uint8_t { kOnce, kAlways };
  void fail(Call call, uint64_t nth, VkResult code, Repeat repeat = Repeat::kOnce) {
    std::lock_guard<std::mutex> lock(mutex_);
    fault_ = {call, nth, code, repeat};
    injected_ = 0;
    lost_ = false;
    counts_ = {};
  }
  // No fault from now on; counts start at 0.
  void clear() { fail(Call::kCount, 0, VK_SUCCESS); }
  // Faults given since `fail`.
  uint64_t injected() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return injected_;
  }
  Counts counts() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
  }
  // Objects that were made and not ended, by the call that makes them; "" where there are none.
  std::string live() const {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string text = unknown_ > 0 ? std::to_string(unknown_) + " ended that never were " : "";
    for (size_t i = 0; i < kCalls; ++i) {
      if (live_[i].empty()) continue;
      text += std::string(kCallNames[i] + 2) + " " + std::to_string(live_[i].size()) + " ";
    }
    return text;
  }

  // For the entry points: the error to give, or VK_SUCCESS.
  VkResult before(Call call) {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t count = ++counts_[static_cast<size_t>(call)];
    if (lost_ && may_lose(call)) return VK_ERROR_DEVICE_LOST;
    const bool now = fault_.repeat == Repeat::kOnce ? count == fault_.nth : count >= fault_.nth;
    if (fault_.call != call || !now) return VK_SUCCESS;
    ++injected_;
    if (fault_.code == VK_ERROR_DEVICE_LOST && call != Call::kCreateDevice) lost_ = true;
    // What was submitted really runs on; a driver that lost its device, or may be taken for one
    // that did, has stopped.
    const bool stops = lost_ || fault_.repeat == Repeat::kAlways;
    if (stops && wait_idle_ != nullptr) wait_idle_(device_);
    return fault_.code;
  }
  void made(Call call, uint64_t handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++live_[static_cast<size_t>(call)][handle];
    if (call == Call::kCreateDevice) device_ = (VkDevice)handle;
  }
  void ended(Call made_by, uint64_t handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (handle == 0) return;
    auto& list = live_[static_cast<size_t>(made_by)];
    const auto found = list.find(handle);
    if (found == list.end()) {
      ++unknown_;
    } else if (--found->second == 0) {
      list.erase(found);
    }
    if (made_by == Call::kCreateDevice) wait_idle_ = nullptr;
  }
  void knows_device(PFN_vkDeviceWaitIdle wait_idle) {
    std::lock_guard<std::mutex> lock(mutex_);
    wait_idle_ = wait_idle;
  }

 private:
  struct Fault {
    Call call = Call::kCount;
    uint64_t nth = 0;
    VkResult code = VK_SUCCESS;
    Repeat repeat = Repeat::kOnce;
  };
  static bool may_lose(Call call) {
    if (call == Call::kCreateDevice) return false;
    for (VkResult code : errors_of(call)) {
      if (code == VK_ERROR_DEVICE_LOST) return true;
    }
    return false;
  }

  mutable std::mutex mutex_;
  Fault fault_;
  Counts counts_{};
  uint64_t injected_ = 0;
  uint64_t unknown_ = 0;
  bool lost_ = false;
  // Several objects may share a handle, as equal layouts do on some drivers.
  std::array<std::map<uint64_t, int>, kCalls> live_;
  VkDevice device_ = VK_NULL_HANDLE;
  PFN_vkDeviceWaitIdle wait_idle_ = nullptr;
};

}  // namespace vkformer::testing
