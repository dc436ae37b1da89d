#include "vkformer/device_group.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "session/group_making.h"

namespace vkformer {

Result<DeviceGroup> DeviceGroup::create(const std::vector<Device>& devices,
                                        const DeviceGroupOptions& options) {
  return guarded([&]() -> Result<DeviceGroup> {
    std::vector<std::shared_ptr<VulkanDevice>> impls;
    for (const Device& device : devices) impls.push_back(HandleAccess::impl(device));
    VKF_ASSIGN(std::shared_ptr<const DeviceGroupState> group, make_group(impls, options));
    return HandleAccess::make<DeviceGroup>(std::move(group));
  });
}

Result<DeviceGroup> DeviceGroup::create_linked(const Device& own, std::shared_ptr<DeviceLink> link,
                                               const DeviceGroupOptions& options) {
  return guarded([&]() -> Result<DeviceGroup> {
    if (!link) return invalid_argument("[group] the link between the processes is null; give one");
    VKF_ASSIGN(std::shared_ptr<const DeviceGroupState> group,
               make_linked_group(HandleAccess::impl(own), std::move(link), options));
    return HandleAccess::make<DeviceGroup>(std::move(group));
  });
}

size_t DeviceGroup::size() const {
  return impl_->members.size();
}

}  // namespace vkformer
