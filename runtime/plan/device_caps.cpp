#include "plan/device_caps.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

constexpr DeviceProfile kProfiles[] = {
#define VKF_PROFILE(name, storage, uniform, buffers, push, shared, invocations, x, y, z, count, \
                    alignment, allocation, tier, int64, timeline)                               \
  {LimitProfile::name,                                                                          \
   {storage,                                                                                    \
    uniform,                                                                                    \
    buffers,                                                                                    \
    push,                                                                                       \
    shared,                                                                                     \
    invocations,                                                                                \
    {x, y, z},                                                                                  \
    {count, count, count},                                                                      \
    alignment,                                                                                  \
    alignment,                                                                                  \
    allocation},                                                                                \
   Tier::tier,                                                                                  \
   int64,                                                                                       \
   timeline},
#include "plan/device_profiles.def"
};

}  // namespace

const DeviceProfile* device_profile(LimitProfile name) {
  for (const DeviceProfile& profile : kProfiles) {
    if (name == profile.name) return &profile;
  }
  return nullptr;
}

std::span<const DeviceProfile> device_profiles() {
  return kProfiles;
}

DeviceCaps reproducible_caps(const DeviceCaps& own) {
  DeviceCaps caps;
  caps.name = own.name;
  caps.driver = own.driver;
  // A workgroup of row kernels is one subgroup of most GPUs.
  caps.subgroup_size = 32;
  caps.device_class = DeviceClass::kSoftware;
  DeviceCaps products = own;
  products.sums_in_order = true;
  products.tuned_matmul = {};
  caps.of_products = std::make_shared<DeviceCaps>(std::move(products));
  const DeviceLimits least = caps.limits;
  caps.limits = own.limits;
  caps.limits.max_uniform_range = least.max_uniform_range;
  caps.limits.max_storage_buffers = least.max_storage_buffers;
  caps.limits.max_push_bytes = least.max_push_bytes;
  caps.limits.max_shared_bytes = least.max_shared_bytes;
  caps.limits.max_invocations = least.max_invocations;
  caps.limits.max_group_size = least.max_group_size;
  caps.keeps_dispatch_base = own.keeps_dispatch_base;
  caps.max_dispatch_flops = own.max_dispatch_flops;
  caps.demoted = own.demoted;
  return caps;
}

DeviceLimits clamp_limits(const DeviceLimits& a, const DeviceLimits& b) {
  DeviceLimits r;
  r.max_storage_range = std::min(a.max_storage_range, b.max_storage_range);
  r.max_uniform_range = std::min(a.max_uniform_range, b.max_uniform_range);
  r.max_storage_buffers = std::min(a.max_storage_buffers, b.max_storage_buffers);
  r.max_push_bytes = std::min(a.max_push_bytes, b.max_push_bytes);
  r.max_shared_bytes = std::min(a.max_shared_bytes, b.max_shared_bytes);
  r.max_invocations = std::min(a.max_invocations, b.max_invocations);
  for (size_t i = 0; i < 3; ++i) {
    r.max_group_size[i] = std::min(a.max_group_size[i], b.max_group_size[i]);
    r.max_group_count[i] = std::min(a.max_group_count[i], b.max_group_count[i]);
  }
  r.storage_alignment = std::max(a.storage_alignment, b.storage_alignment);
  r.uniform_alignment = std::max(a.uniform_alignment, b.uniform_alignment);
  r.max_allocation = std::min(a.max_allocation, b.max_allocation);
  return r;
}

}  // namespace vkformer
