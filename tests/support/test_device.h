// The device that GPU tests run on, one per process. The environment chooses it: what
// test_options.h lists (where it names a device, a missing one fails the test), and
//   VKFORMER_TEST_TIMELINE  "fences": without timeline semaphores
//   VKFORMER_TEST_MEMORY    "staged": as if device memory were not mapped
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "base/handle_access.h"
#include "support/kept.h"
#include "support/test_options.h"
#include "vkformer/device.h"
#include "vulkan/device.h"
#include "vulkan/tweaks.h"

namespace vkformer {

inline DeviceTweaks test_device_tweaks() {
  DeviceTweaks tweaks;
  if (test_environment("VKFORMER_TEST_TIMELINE") == "fences") {
    tweaks.timeline = DeviceTweaks::Timeline::kFences;
  }
  if (test_environment("VKFORMER_TEST_MEMORY") == "staged") {
    tweaks.device_memory = DeviceTweaks::DeviceMemory::kStaged;
  }
  return tweaks;
}

// What a Device holds, and a Device of such.
inline std::shared_ptr<VulkanDevice> vulkan_of(const Device& device) {
  return HandleAccess::impl(device);
}
inline Device device_of(std::shared_ptr<VulkanDevice> device) {
  return HandleAccess::make<Device>(std::move(device));
}

inline Result<Device> make_test_device(const DeviceOptions& options, const DeviceTweaks& tweaks) {
  auto made = VulkanDevice::create_tweaked(options, tweaks);
  if (!made) return made.error();
  return device_of(std::move(made).value());
}

// The device that tests share.
inline Result<Device> test_device() {
  static testing::Kept<Result<Device>> device;
  return device.get([] { return make_test_device(test_device_options(), test_device_tweaks()); });
}

// True where there is a device; else says why not, as a failure where one was asked for by name.
inline bool have_test_device() {
  const Result<Device> device = test_device();
  if (device) return true;
  if (!test_environment("VKFORMER_TEST_DEVICE").empty()) {
    FAIL_CHECK(device.error().message);
  } else {
    MESSAGE("skipped: " << device.error().message);
  }
  return false;
}

}  // namespace vkformer

// Declares `std::shared_ptr<VulkanDevice> name`, or leaves the test with a printed reason.
#define VKF_TEST_DEVICE(name)                  \
  if (!::vkformer::have_test_device()) return; \
  std::shared_ptr<::vkformer::VulkanDevice> name = ::vkformer::vulkan_of(*::vkformer::test_device())
