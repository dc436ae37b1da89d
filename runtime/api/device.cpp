#include "vkformer/device.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "measure/matrix_proof.h"
#include "vkformer/vulkan_interop.h"
#include "vulkan/device.h"

namespace vkformer {

Result<std::vector<DeviceInfo>> list_devices() {
  return guarded([&] { return VulkanDevice::list(); });
}

Result<Device> Device::create(const DeviceOptions& options) {
  return guarded([&]() -> Result<Device> {
    auto made = VulkanDevice::create(options);
    if (!made) return made.error();
    prove_matrix_units(*made, (*made)->caps());
    return HandleAccess::make<Device>(std::move(made).value());
  });
}

DeviceInfo Device::info() const {
  return impl_->info();
}

Tier Device::tier() const {
  return impl_->caps().tier;
}

uint64_t Device::memory_in_use() const {
  return impl_->memory_in_use();
}

uint64_t Device::memory_allocated() const {
  return impl_->memory_allocated();
}

Result<Device> adopt_device(const AdoptedDevice& adopted, const DeviceOptions& options) {
  return guarded([&]() -> Result<Device> {
    auto made = VulkanDevice::adopt(adopted, options);
    if (!made) return made.error();
    prove_matrix_units(*made, (*made)->caps());
    return HandleAccess::make<Device>(std::move(made).value());
  });
}

}  // namespace vkformer
