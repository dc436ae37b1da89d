#include "kernels/catalogue.h"

#include <zstd.h>

#include <array>
#include <memory>

#include "base/message.h"
#include "kernel_constants.inc"

#define VKF_KERNEL_GROUP(group)               \
  extern const uint8_t kSpirvGroup_##group[]; \
  extern const uint32_t kSpirvIndex_##group[];
#include "kernel_groups.inc"
#undef VKF_KERNEL_GROUP

namespace vkformer {
namespace {

enum class Group : uint16_t {
#define VKF_KERNEL_GROUP(group) group,
#include "kernel_groups.inc"
#undef VKF_KERNEL_GROUP
  kCount
};

// The block, and its index (cmake/embed_kernels.cmake): bytes of the block, then first word and
// words of each of its kernels.
struct GroupSpirv {
  const uint8_t* block;
  const uint32_t* index;
};

constexpr GroupSpirv kGroups[] = {
#define VKF_KERNEL_GROUP(group) {kSpirvGroup_##group, kSpirvIndex_##group},
#include "kernel_groups.inc"
#undef VKF_KERNEL_GROUP
};

struct KernelRow {
  Group group;
  uint16_t features;
  uint8_t constants;
};

#define VKF_ONE_CONSTANT(id, name, field, otherwise) +1
constexpr KernelRow kRows[] = {
#define VKF_KERNEL(name, group, features, list) {Group::group, features, 0 list(VKF_ONE_CONSTANT)},
#include "kernel_list.inc"
#undef VKF_KERNEL
};

// Name and list of constants of every kernel. One text has no pointers that a loader would
// relocate.
constexpr char kNames[] =
#define VKF_KERNEL(name, group, features, list) #name "\0" #list "\0"
#include "kernel_list.inc"
#undef VKF_KERNEL
    ;

using KernelInfos = std::array<KernelInfo, static_cast<size_t>(KernelId::kCount)>;

KernelInfos make_infos() {
  KernelInfos infos;
  std::array<size_t, static_cast<size_t>(Group::kCount)> seen{};  // kernels of each group so far
  const char* text = kNames;
  const auto next_text = [&text] {
    const std::string_view found(text);
    text += found.size() + 1;
    return found;
  };
  for (size_t i = 0; i < infos.size(); ++i) {
    const KernelRow& row = kRows[i];
    const auto [block, index] = kGroups[static_cast<size_t>(row.group)];
    const uint32_t* const place = index + 1 + 2 * seen[static_cast<size_t>(row.group)]++;
    infos[i].name = next_text();
    infos[i].features = row.features;
    infos[i].constants_list = next_text();
    infos[i].constants = row.constants;
    infos[i].packed = {block, index[0]};
    infos[i].first_word = place[0];
    infos[i].words = place[1];
  }
  return infos;
}

}  // namespace

const KernelInfo& kernel_info(KernelId id) {
  static const KernelInfos infos = make_infos();
  return infos[static_cast<size_t>(id)];
}

std::vector<uint32_t> kernel_spirv(KernelId id) {
  const KernelInfo& info = kernel_info(id);
  if (info.words == 0) return {};
  // As far as the kernel's last word.
  std::vector<uint32_t> group(info.first_word + info.words);
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  ZSTD_inBuffer from{info.packed.data(), info.packed.size(), 0};
  ZSTD_outBuffer to{group.data(), group.size() * sizeof(uint32_t), 0};
  while (context && to.pos < to.size) {
    const size_t before = to.pos;
    if (ZSTD_isError(ZSTD_decompressStream(context.get(), &to, &from)) != 0) return {};
    if (to.pos == before && from.pos == from.size) return {};
  }
  if (to.pos < to.size) return {};
  const auto first = group.begin() + info.first_word;
  return {first, first + info.words};
}

Result<KernelInterface> kernel_interface(KernelId id) {
  auto result = reflect_spirv(kernel_spirv(id));
  if (!result) return result.error().with_context(message({"[", kernel_info(id).name, "]"}));
  return result;
}

}  // namespace vkformer
