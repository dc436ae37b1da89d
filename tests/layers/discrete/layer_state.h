// What the layer knows of the process, of each instance and of each device.
#pragma once

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "discrete_layer.h"
#include "layer_base.h"

namespace vkformer::testing {

// Functions of the next layer or the driver that the layer calls or replaces.
#define NEXT_INSTANCE(X)               \
  X(GetInstanceProcAddr)               \
  X(DestroyInstance)                   \
  X(GetPhysicalDeviceProperties)       \
  X(GetPhysicalDeviceProperties2)      \
  X(GetPhysicalDeviceMemoryProperties) \
  X(GetPhysicalDeviceMemoryProperties2)

#define NEXT_DEVICE(X)                 \
  X(GetDeviceProcAddr)                 \
  X(DestroyDevice)                     \
  X(AllocateMemory)                    \
  X(FreeMemory)                        \
  X(MapMemory)                         \
  X(GetBufferMemoryRequirements)       \
  X(GetBufferMemoryRequirements2)      \
  X(GetImageMemoryRequirements)        \
  X(GetImageMemoryRequirements2)       \
  X(GetMemoryHostPointerPropertiesEXT) \
  X(QueueSubmit)                       \
  X(QueueSubmit2)                      \
  X(QueueWaitIdle)                     \
  X(DeviceWaitIdle)                    \
  X(WaitSemaphores)                    \
  X(WaitSemaphoresKHR)                 \
  X(GetSemaphoreCounterValue)          \
  X(GetSemaphoreCounterValueKHR)       \
  X(WaitForFences)                     \
  X(GetFenceStatus)                    \
  X(CmdCopyBuffer)                     \
  X(CmdCopyBuffer2)                    \
  X(CmdUpdateBuffer)

#define MEMBER(name) PFN_vk##name name = nullptr;
struct InstanceTable {
  NEXT_INSTANCE(MEMBER)
};
struct DeviceTable {
  NEXT_DEVICE(MEMBER)
};
#undef MEMBER

// The memory that the application sees, and the driver's memory that backs it.
struct Presented {
  VkPhysicalDeviceMemoryProperties memory{};
  bool own = false;                   // false: `memory` is the driver's
  uint32_t backing = 0;               // the driver's type for all that the layer presents
  VkDeviceSize small_heap_bytes = 0;  // of heap 2; 0: it is not there

  bool in_small_heap(uint32_t type) const {
    return small_heap_bytes != 0 && memory.memoryTypes[type].heapIndex == 2;
  }
  bool mappable(uint32_t type) const {
    return (memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
  }
  uint32_t real_type(uint32_t type) const { return own ? backing : type; }
  // A resource may lie in every presented type if it may lie in the one that backs them.
  void translate(uint32_t& type_bits) const {
    if (own) type_bits = (type_bits >> backing & 1) != 0 ? (1u << memory.memoryTypeCount) - 1 : 0;
  }
  // Memory of the host stays outside device memory when it is imported.
  void translate_imported(uint32_t& type_bits) const {
    if (!own) return;
    translate(type_bits);
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
      if ((flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0) type_bits &= ~(1u << i);
    }
  }
};

// Numbers are shorter to read in a failed check than the system's thread ids.
inline uint32_t thread_number() {
  static std::atomic<uint32_t> next{0};
  thread_local const uint32_t number = ++next;
  return number;
}

constexpr size_t kKeptWaits = 65536;

// The counts of the process. A lock and not atomic values: a snapshot of them must fit together.
class Ledger {
 public:
  template <class Change>
  void count(const Change& change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change(counts_);
  }
  // A wait for no submit at all is nobody's work, so it is not foreign.
  void wait(const LayerWait& wait) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.waits;
    counts_.waits_reached += wait.reached;
    counts_.foreign_waits += wait.submitter != 0 && wait.submitter != wait.thread ? 1 : 0;
    if (waits_.size() < kKeptWaits) waits_.push_back(wait);
  }
  LayerCounts counts() {
    std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
  }
  size_t waits(LayerWait* out, size_t capacity) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::copy_n(waits_.begin(), std::min(capacity, waits_.size()), out);
    return waits_.size();
  }
  void restart() {
    std::lock_guard<std::mutex> lock(mutex_);
    counts_ = {};
    waits_.clear();
  }

 private:
  std::mutex mutex_;
  LayerCounts counts_;
  std::vector<LayerWait> waits_;
};

// Never destroyed: a test may read it while the process ends.
inline Ledger& ledger() {
  static Ledger* made = new Ledger;
  return *made;
}

struct InstanceState {
  VkInstance instance = VK_NULL_HANDLE;
  InstanceTable next;
};

// Who submitted what, and where memory lies.
struct DeviceState {
  DeviceTable next;
  Presented presented;
  std::mutex mutex;                                                    // guards what follows
  std::map<VkDeviceMemory, std::pair<uint32_t, VkDeviceSize>> memory;  // presented type, bytes
  VkDeviceSize small_heap_used = 0;                                    // bytes
  std::map<VkSemaphore, std::map<uint64_t, uint32_t>> signals;  // value -> thread that submitted it
  std::map<VkFence, uint32_t> fences;                           // thread that submitted it last
};

inline Registry<InstanceState>& instances() {
  static auto* made = new Registry<InstanceState>;
  return *made;
}

inline Registry<DeviceState>& devices() {
  static auto* made = new Registry<DeviceState>;
  return *made;
}

// The replacement of a function that submits, waits or copies, or null.
PFN_vkVoidFunction counted_replacement(const char* name);

}  // namespace vkformer::testing
