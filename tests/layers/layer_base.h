// What every Vulkan layer of the tests and tools needs: the loader's links, functions by their
// names, states by their handles.
#pragma once

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan_core.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace vkformer::testing {

// Instances and devices by the loader's dispatch pointer, which is the first word of each
// dispatchable handle. An instance's physical devices share it, and so do a device's queues and
// command buffers.
template <class State>
class Registry {
 public:
  State* add(const void* handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    return (states_[key(handle)] = std::make_unique<State>()).get();
  }
  State& of(const void* handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    return *states_.at(key(handle));
  }
  // The caller destroys the state after the handle: the loader may reuse the pointer at once.
  std::unique_ptr<State> take(const void* handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = states_.find(key(handle));
    std::unique_ptr<State> state = std::move(found->second);
    states_.erase(found);
    return state;
  }

 private:
  static const void* key(const void* handle) { return *static_cast<void* const*>(handle); }
  std::mutex mutex_;
  std::map<const void*, std::unique_ptr<State>> states_;
};

// The structure of that type in a pNext chain, or null.
template <class T>
T* find_in_chain(const void* chain, VkStructureType type) {
  for (auto* s = static_cast<const VkBaseInStructure*>(chain); s != nullptr; s = s->pNext) {
    if (s->sType == type) return reinterpret_cast<T*>(const_cast<VkBaseInStructure*>(s));
  }
  return nullptr;
}

struct Replacement {
  const char* name;
  PFN_vkVoidFunction function;
};

template <class Function>
PFN_vkVoidFunction erased(Function* function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

template <size_t count>
PFN_vkVoidFunction find_replacement(const Replacement (&all)[count], const char* name) {
  for (const Replacement& r : all) {
    if (std::strcmp(r.name, name) == 0) return r.function;
  }
  return nullptr;
}

// A Vulkan function by its name without "vk", replaced by the layer's own function of that name.
#define VKF_REPLACED(name) \
  { "vk" #name, erased(name) }

// The loader's link to the next layer. It is the layer's to advance, though the chain is const.
template <class T>
T* layer_link(const void* chain, VkStructureType type) {
  for (T* s = find_in_chain<T>(chain, type); s != nullptr; s = find_in_chain<T>(s->pNext, type)) {
    if (s->function == VK_LAYER_LINK_INFO) return s;
  }
  return nullptr;
}

}  // namespace vkformer::testing
