// What a build with VKFORMER_WITH_SOFTWARE_KERNELS=OFF links in place of this room: no device has a
// strategy of it, and no compiler wants literals.
#include "software/compiler.h"
#include "software/strategies.h"

namespace vkformer {

bool has_software_strategies() {
  return false;
}

const MatmulStrategyRow& software_strategy_row(MatmulStrategy) {
  static constexpr MatmulStrategyRow kNone{
      [](const MatmulChoice&, const DeviceCaps&) { return false; },
      [](const MatmulCall&, const MatmulChoice&) { return false; },
      [](Dispatch&, const MatmulCall&, const MatmulChoice&, uint32_t) {}};
  return kNone;
}

std::vector<MatmulTableRow> software_matmul_table(const DeviceCaps&) {
  return {};
}

std::vector<MatmulChoice> software_matmul_candidates(uint32_t) {
  return {};
}

std::optional<AttentionStrategy> software_attention(const DeviceCaps&, const AttentionAttrs&) {
  return std::nullopt;
}

bool software_attention_step(const DeviceCaps&, const AttentionStepAttrs&,
                             const AttentionStepLaunch&, Dispatch&) {
  return false;
}

std::optional<KernelId> software_lsh_hash(const DeviceCaps&, uint32_t) {
  return std::nullopt;
}

void describe_software_compiler(DeviceCaps&) {}

Result<std::vector<uint32_t>> literal_module(std::span<const uint32_t>, std::span<const uint32_t>) {
  return internal_error("[SPIR-V] this build rewrites no modules");
}

}  // namespace vkformer
