#include "kernels/catalogue.h"

#include <zstd.h>

#include "base/message.h"
#include "kernel_constants.inc"

#define VKF_KERNEL_GROUP(group)                   \
  extern const uint8_t kSpirvGroup_##group[];     \
  extern const uint32_t kSpirvGroupBytes_##group; \
  extern const uint32_t kSpirvGroupWords_##group;
#include "kernel_groups.inc"
#undef VKF_KERNEL_GROUP
#define VKF_KERNEL(name, group, features, list) \
  extern const uint32_t kSpirvAt_##name;        \
  extern const uint32_t kSpirvWords_##name;
#include "kernel_list.inc"
#undef VKF_KERNEL

namespace vkformer {

const KernelInfo& kernel_info(KernelId id) {
  static const KernelInfo kInfos[] = {
#define VKF_ONE_CONSTANT(id, name, field, otherwise) +1
#define VKF_KERNEL(name, group, features, list)     \
  {#name,                                           \
   features,                                        \
   #list,                                           \
   0 list(VKF_ONE_CONSTANT),                        \
   {kSpirvGroup_##group, kSpirvGroupBytes_##group}, \
   kSpirvGroupWords_##group,                        \
   kSpirvAt_##name,                                 \
   kSpirvWords_##name},
#include "kernel_list.inc"
#undef VKF_KERNEL
  };
  return kInfos[static_cast<size_t>(id)];
}

std::vector<uint32_t> kernel_spirv(KernelId id) {
  const KernelInfo& info = kernel_info(id);
  if (info.words == 0) return {};
  std::vector<uint32_t> group(info.group_words);
  const size_t bytes = group.size() * sizeof(uint32_t);
  const size_t got = ZSTD_decompress(group.data(), bytes, info.packed.data(), info.packed.size());
  if (ZSTD_isError(got) != 0 || got != bytes) return {};
  const auto first = group.begin() + info.first_word;
  return {first, first + info.words};
}

Result<KernelInterface> kernel_interface(KernelId id) {
  auto result = reflect_spirv(kernel_spirv(id));
  if (!result) return result.error().with_context(message({"[", kernel_info(id).name, "]"}));
  return result;
}

}  // namespace vkformer
