// How tests make a device behave like a lesser one. Applications never set these.
#pragma once

#include <vulkan/vulkan_core.h>

#include <vector>

#include "driver/quirks.h"
#include "vulkan/context.h"

namespace vkformer {

struct DeviceTweaks {
  // kFences: do without timeline semaphores though the device has them.
  enum class Timeline : uint8_t { kAuto, kFences } timeline = Timeline::kAuto;
  // kStaged: treat device memory as unmapped, as on a discrete GPU.
  enum class DeviceMemory : uint8_t { kAuto, kStaged } device_memory = DeviceMemory::kAuto;
  // kUnknown: as if the driver did not say how many compute units there are.
  enum class ComputeUnits : uint8_t { kAuto, kUnknown } compute_units = ComputeUnits::kAuto;
  // Looked up after the known ones.
  std::vector<Quirk> quirks;
  // In place of the system loader's, from which all function tables are filled; null: that one. A
  // test that injects faults returns its own functions here.
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  // Not 0: the workgroups of a dispatch run one after the other, in an order that this seed
  // decides.
  uint32_t scatter_seed = 0;
  // SPIR-V that takes the place of the catalogue's: kernels that are wrong.
  PlantedKernels planted;
  // The same of reproducible precision: what takes the place of the rewritten kernels.
  PlantedKernels planted_reproducible;
  // What pipelines keep of their compilation, beside what DeviceOptions::statistics asks for.
  Capture capture = Capture::kNone;
};

}  // namespace vkformer
