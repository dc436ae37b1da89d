#include "conformance/kernels.h"

#include "kernel_constants.inc"

namespace vkformer::conformance {
namespace {

struct Variant {
  const char* name;
  uint32_t features;
  const char* constants;  // their names, each with a comma after it
};
#define VKF_CONSTANT_NAME(id, name, field, otherwise) #field ","
constexpr Variant kVariants[] = {
#define VKF_KERNEL(name, group, features, list) {#name, features, "" list(VKF_CONSTANT_NAME)},
#include "kernel_list.inc"
#undef VKF_KERNEL
};

}  // namespace

const char* name_of(KernelId kernel) {
  return kVariants[static_cast<size_t>(kernel)].name;
}

std::vector<std::string_view> constants_of(KernelId kernel) {
  std::vector<std::string_view> names;
  std::string_view rest = kVariants[static_cast<size_t>(kernel)].constants;
  while (!rest.empty()) {
    names.push_back(rest.substr(0, rest.find(',')));
    rest.remove_prefix(names.back().size() + 1);
  }
  return names;
}

std::vector<KernelId> all_kernels() {
  std::vector<KernelId> list;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    list.push_back(static_cast<KernelId>(i));
  }
  return list;
}

std::string why_not(KernelId kernel, const DeviceCaps& caps) {
  const uint32_t needs = kVariants[static_cast<size_t>(kernel)].features;
  if ((needs & kFeature_absent) != 0) return "is not part of this build";
  if ((needs & kFeature_subgroup) != 0 && !caps.subgroup()) return "needs the subgroup tier";
  if ((needs & kFeature_fp16) != 0 && !caps.fp16()) return "needs the fp16 tier";
  if ((needs & kFeature_matrix) != 0 && !caps.matrix()) {
    return "needs the matrix tier, and SPIR-V of a compiler that knows cooperative matrices";
  }
  if ((needs & kFeature_matrix2) != 0 && !caps.matrix2()) {
    return "needs VK_NV_cooperative_matrix2, and SPIR-V of a compiler that knows it";
  }
  if ((needs & kFeature_dot8) != 0 && !caps.dot8()) return "needs integer dot products";
  if ((needs & kFeature_tables) != 0 && !caps.tables()) {
    return "needs arrays of buffers (descriptor indexing), which only software devices are asked "
           "for";
  }
  if ((needs & kFeature_int64) != 0 && !caps.int64()) return "needs 64-bit integers in shaders";
  return {};
}

}  // namespace vkformer::conformance
