// The entry points that FaultTable hands out in place of the driver's.
#pragma once

#include <cstring>
#include <tuple>

#include "driver/loader.h"
#include "support/fault_table.h"

namespace vkformer::testing {

// The driver's own function of an entry point.
template <size_t slot>
inline PFN_vkVoidFunction driver_function = nullptr;

template <size_t slot, class Function>
struct EntryPoint;

template <size_t slot, class Result, class... Arguments>
struct EntryPoint<slot, Result(VKAPI_PTR*)(Arguments...)> {
  static VKAPI_ATTR Result VKAPI_CALL enter(Arguments... arguments) {
    const auto driver = reinterpret_cast<Result(VKAPI_PTR*)(Arguments...)>(driver_function<slot>);
    const auto list = std::tie(arguments...);
    if constexpr (slot >= kCalls) {
      ended(list);
      driver(arguments...);
    } else {
      constexpr Call kCall = static_cast<Call>(slot);
      const VkResult failed = FaultTable::get().before(kCall);
      if (failed != VK_SUCCESS) {
        poison(list);
        return failed;
      }
      const VkResult result = driver(arguments...);
      if (result == VK_SUCCESS && makes_object()) note(list);
      return result;
    }
  }

 private:
  static constexpr size_t kLast = sizeof...(Arguments) - 1;

  static constexpr bool makes_object() {
#define VKF_IS(end, made) \
  if (slot == static_cast<size_t>(Call::k##made)) return true;
    VKF_ENDING_CALLS(VKF_IS)
#undef VKF_IS
    return false;
  }
  // What a failed call leaves is undefined; for pipelines, sets and command buffers it is
  // null.
  static void poison(const std::tuple<Arguments&...>& list) {
    if constexpr (makes_object() && slot != static_cast<size_t>(Call::kCreateComputePipelines)) {
      std::memset(static_cast<void*>(std::get<kLast>(list)), 0x5a, sizeof *std::get<kLast>(list));
    }
  }
  static void note(const std::tuple<Arguments&...>& list) {
    if constexpr (makes_object()) {
      FaultTable::get().made(static_cast<Call>(slot), (uint64_t)*std::get<kLast>(list));
    }
  }
  static void ended(const std::tuple<Arguments&...>& list) {
    constexpr size_t kObject = kLast == 1 ? 0 : 1;
    size_t at = kCalls;
#define VKF_ENDED(end, made) \
  if (at++ == slot) FaultTable::get().ended(Call::k##made, (uint64_t)std::get<kObject>(list));
    VKF_ENDING_CALLS(VKF_ENDED)
#undef VKF_ENDED
  }
};

// Ours in place of the driver's function of that name, or the driver's.
inline PFN_vkVoidFunction entry_point(const char* name, PFN_vkVoidFunction driver) {
  if (driver == nullptr) return nullptr;
#define VKF_FAILING(call, ...)                                                           \
  if (std::strcmp(name, "vk" #call) == 0) {                                              \
    constexpr auto kSlot = static_cast<size_t>(Call::k##call);                           \
    driver_function<kSlot> = driver;                                                     \
    return reinterpret_cast<PFN_vkVoidFunction>(EntryPoint<kSlot, PFN_vk##call>::enter); \
  }
  VKF_FAILING_CALLS(VKF_FAILING)
#undef VKF_FAILING
  enum Ending : size_t {
    kBeforeEnding = kCalls - 1,
#define VKF_SLOT(call, made) kEnding##call,
    VKF_ENDING_CALLS(VKF_SLOT)
#undef VKF_SLOT
  };
#define VKF_ENDING(call, made)                                                                   \
  if (std::strcmp(name, "vk" #call) == 0) {                                                      \
    driver_function<kEnding##call> = driver;                                                     \
    return reinterpret_cast<PFN_vkVoidFunction>(EntryPoint<kEnding##call, PFN_vk##call>::enter); \
  }
  VKF_ENDING_CALLS(VKF_ENDING)
#undef VKF_ENDING
  return driver;
}

inline PFN_vkGetInstanceProcAddr system_functions() {
  static const Result<Loader> kLoader = Loader::open();
  return kLoader ? kLoader->get_instance_proc_addr() : nullptr;
}

inline PFN_vkGetDeviceProcAddr driver_get_device_proc_addr = nullptr;

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device_proc_addr(VkDevice device,
                                                                     const char* name) {
  const PFN_vkVoidFunction driver = driver_get_device_proc_addr(device, name);
  if (std::strcmp(name, "vkDeviceWaitIdle") == 0) {
    FaultTable::get().knows_device(reinterpret_cast<PFN_vkDeviceWaitIdle>(driver));
  }
  return entry_point(name, driver);
}

inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
FaultTable::get_instance_proc_addr(VkInstance instance, const char* name) {
  const PFN_vkGetInstanceProcAddr system = system_functions();
  if (system == nullptr) return nullptr;
  const PFN_vkVoidFunction driver = system(instance, name);
  if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return entry_point(name, driver);
  driver_get_device_proc_addr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(driver);
  return reinterpret_cast<PFN_vkVoidFunction>(get_device_proc_addr);
}

}  // namespace vkformer::testing
