// What tests of kernels by matrix units share: the device, an invented one, and the self-check.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "conformance/planted.h"
#include "measure/matrix_proof.h"
#include "support/operator_check.h"

namespace vkformer::testing {

// The test device, where it has matrix units and this build kernels for them; else says why not.
inline std::shared_ptr<VulkanDevice> units_device() {
  if (!have_test_device()) return nullptr;
  std::shared_ptr<VulkanDevice> device = vulkan_of(*test_device());
  if (device->caps().matrix()) return device;
  MESSAGE("skipped: the device runs at tier " << std::string(choice_name(device->caps().tier))
                                              << ", but matrix units need matrix");
  return nullptr;
}

// An invented GPU with these units.
inline DeviceCaps caps_with_units(std::vector<MatrixUnit> units) {
  DeviceCaps caps = caps_of_tier(Tier::kMatrix);
  caps.device_class = DeviceClass::kDiscrete;
  caps.limits.max_invocations = 1024;
  caps.limits.max_group_size = {1024, 1024, 64};
  caps.limits.max_shared_bytes = 49152;
  caps.matrix_units = std::move(units);
  caps.unit_lanes = caps.subgroup_size;
  caps.max_unit_subgroups = 64;
  return caps;
}

// What the device would be as a GPU with `shared_bytes` of shared memory: little leaves the
// smallest blocks, which compile soonest.
inline DeviceCaps as_small_gpu(const Device& device, uint32_t shared_bytes) {
  DeviceCaps caps = vulkan_of(device)->caps();
  caps.device_class = DeviceClass::kDiscrete;
  caps.limits.max_shared_bytes = shared_bytes;
  return caps;
}

// With every product in it turned into a sum, the self-check leaves the kernel out, and without it
// not. kernel_of: what a plan for such a device begins with. change: what else that device is.
inline void check_self_check(
    KernelId kernel, uint32_t shared_bytes,
    const std::function<KernelId(const DeviceCaps&)>& kernel_of,
    const std::function<void(DeviceCaps&)>& change = [](DeviceCaps&) {}) {
  const auto as_gpu = [&](const Device& device) {
    DeviceCaps caps = as_small_gpu(device, shared_bytes);
    change(caps);
    return caps;
  };
  const auto kernel_on = [&](const Device& device) { return kernel_of(as_gpu(device)); };
  const auto prove = [&](const Device& device) {
    prove_matrix_units(vulkan_of(device), as_gpu(device));
  };
  const Device right = planted_device({}, "none");
  prove(right);
  CHECK(vulkan_of(right)->caps().demoted.empty());
  CHECK(kernel_on(right) == kernel);
  const Device wrong = planted_device({{kernel, with_faults(kernel, kFMul, kFAdd)}}, "none");
  CHECK(kernel_on(wrong) == kernel);
  prove(wrong);
  CHECK(vulkan_of(wrong)->caps().demoted == std::vector<KernelId>{kernel});
  CHECK(kernel_on(wrong) != kernel);
  CHECK(wrong.info().notes.back().find("self-check") != std::string::npos);
}

}  // namespace vkformer::testing
