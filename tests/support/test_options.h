// What the environment asks of the device that tests run on, also of those that are programs apart:
//   VKFORMER_TEST_DEVICE    DeviceOptions::device
//   VKFORMER_TEST_TIER      DeviceOptions::tier
//   VKFORMER_TEST_LIMITS    DeviceOptions::limits
#pragma once

#include <cstdlib>
#include <string>

#include "vkformer/device.h"

namespace vkformer {

inline std::string test_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// What the environment asks for; no pipeline cache, so that every test compiles what it uses.
inline DeviceOptions test_device_options() {
  DeviceOptions options;
  const std::string device = test_environment("VKFORMER_TEST_DEVICE");
  const std::string tier = test_environment("VKFORMER_TEST_TIER");
  if (!device.empty()) options.device = device;
  const std::string limits = test_environment("VKFORMER_TEST_LIMITS");
  if (!tier.empty() && tier != "best") options.tier = choice_from_name<Tier>(tier).value();
  if (!limits.empty()) options.limits = choice_from_name<LimitProfile>(limits).value();
  options.cache_directory = "none";
  return options;
}

}  // namespace vkformer
