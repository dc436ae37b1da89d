#include "measure/conformance_support.h"

#include <algorithm>

#include "base/check.h"
#include "base/handle_access.h"
#include "device_files/demotion_file.h"
#include "ops/op.h"
#include "vulkan/device_impl.h"

namespace vkformer {

const DeviceCaps& capabilities_of(const Device& device) {
  return HandleAccess::impl(device)->caps();
}

Result<std::string> demote_kernels(const Device& device, const std::vector<KernelId>& kernels) {
  VulkanDevice::Impl& impl = HandleAccess::impl(device)->impl();
  if (impl.demotion_file.empty()) {
    return invalid_argument(
        "[demotions] This device keeps no cache, so nothing can be written down; make it with a "
        "cache directory.");
  }
  std::vector<KernelId>& demoted = impl.context.caps.demoted;
  if (kernels.empty()) demoted.clear();
  for (const KernelId id : kernels) {
    if (std::find(demoted.begin(), demoted.end(), id) == demoted.end()) demoted.push_back(id);
  }
  VKF_CHECK(write_demoted_kernels(impl.demotion_file, impl.cache_key, demoted));
  return impl.demotion_file;
}

Result<Plan> plan_on(const Device& device, const Graph& graph) {
  return make_plan(graph, HandleAccess::impl(device)->caps(), Precision::kF32);
}

std::vector<uint32_t> spirv_on(const Device& device, KernelId kernel) {
  const PlantedKernels& planted = HandleAccess::impl(device)->impl().context.planted;
  const auto found = planted.find(kernel);
  return found == planted.end() ? kernel_spirv(kernel) : found->second;
}

}  // namespace vkformer
