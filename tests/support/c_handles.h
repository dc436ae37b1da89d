// Handles of the C interface that free themselves, and the test device made through it.
#pragma once

#include <memory>

#include "support/test_device.h"
#include "vkformer/vkformer.h"

namespace vkformer::testing {

template <class Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

inline vkf_status make_c_device(Owned<vkf_device>& device, vkf_error* error) {
  const DeviceOptions wanted = test_device_options();
  vkf_device_options options{};
  options.struct_size = sizeof(options);
  options.device = wanted.device.c_str();
  options.tier = choice_name(wanted.tier);
  options.limits = choice_name(wanted.limits);
  options.cache_directory = "none";
  vkf_device* made = nullptr;
  const vkf_status status = vkf_device_create(&options, &made, error);
  device.reset(made);
  return status;
}

}  // namespace vkformer::testing
