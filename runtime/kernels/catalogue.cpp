#include "kernels/catalogue.h"

#define VKF_KERNEL(name, features)       \
  extern const uint32_t kSpirv_##name[]; \
  extern const uint32_t kSpirvWords_##name;
#include "kernel_list.inc"
#undef VKF_KERNEL

namespace vkformer {

const KernelInfo& kernel_info(KernelId id) {
  static const KernelInfo kInfos[] = {
#define VKF_KERNEL(name, features) {#name, features, {kSpirv_##name, kSpirvWords_##name}},
#include "kernel_list.inc"
#undef VKF_KERNEL
  };
  return kInfos[static_cast<size_t>(id)];
}

Result<KernelInterface> kernel_interface(KernelId id) {
  auto result = reflect_spirv(kernel_info(id).spirv);
  if (!result) return result.error().with_context("[" + std::string(kernel_info(id).name) + "]");
  return result;
}

}  // namespace vkformer
