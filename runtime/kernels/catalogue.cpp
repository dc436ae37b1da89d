#include "kernels/catalogue.h"

#define VKF_KERNEL(name, features)          \
  extern const uint8_t kSpirv_##name[];     \
  extern const uint32_t kSpirvBytes_##name; \
  extern const uint32_t kSpirvWords_##name;
#include "kernel_list.inc"
#undef VKF_KERNEL

namespace vkformer {

const KernelInfo& kernel_info(KernelId id) {
  static const KernelInfo kInfos[] = {
#define VKF_KERNEL(name, features) \
  {#name, features, {kSpirv_##name, kSpirvBytes_##name}, kSpirvWords_##name},
#include "kernel_list.inc"
#undef VKF_KERNEL
  };
  return kInfos[static_cast<size_t>(id)];
}

std::vector<uint32_t> kernel_spirv(KernelId id) {
  const KernelInfo& info = kernel_info(id);
  std::vector<uint32_t> words(info.words);
  size_t at = 0;
  for (size_t i = 0; i < words.size(); i += 4) {
    const uint32_t control = info.packed[at++];
    for (size_t n = 0; n < 4 && i + n < words.size(); ++n) {
      const uint32_t bytes = (control >> (2 * n) & 3u) + 1;
      for (uint32_t b = 0; b < bytes; ++b) words[i + n] |= uint32_t{info.packed[at++]} << (8 * b);
    }
  }
  return words;
}

Result<KernelInterface> kernel_interface(KernelId id) {
  auto result = reflect_spirv(kernel_spirv(id));
  if (!result) return result.error().with_context("[" + std::string(kernel_info(id).name) + "]");
  return result;
}

}  // namespace vkformer
