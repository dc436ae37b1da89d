// Kernels with subgroup operations for GPUs, with emulated subgroups of many sizes.
#include "conformance/emulated_subgroups.h"

namespace vkformer::testing {
namespace {

// Checks of every operator that has such kernels, of rows that fill workgroups of 128 and others.
const std::vector<std::string> kFilters = {
    "softmax/plain/normal", "log_softmax/normal", "layer_norm/plain", "rms_norm/plain",
    "group_norm/normal",    "head_norm/rms/",     "argmax/normal",    "top_k/",
    "mean_pool/normal",     "row_entropy/normal", "attention/causal", "attention_weights/plain",
    "attention/step-self",  "token_candidates/",  "expert_route/",    "gated_norm/gate-first/",
    "state_scan/delta/"};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("row, search and attention kernels are right with subgroups of 32 and 128") {
    if (!has_subgroups()) return;
    for (const uint32_t size : {32u, 128u}) {
      const auto ran = run_emulated(size, DeviceClass::kDiscrete, kFilters);
      for (const auto& [kernel, words] : emulated_kernels(size)) {
        const std::string name(kernel_info(kernel).name);
        if (name.starts_with("matmul_")) continue;  // of software devices
        CHECK_MESSAGE(std::count(ran.begin(), ran.end(), name) == 1, size << " lanes: " << name);
      }
    }
  }
  TEST_CASE("reductions are right with subgroups of 16 and 64") {
    if (!has_subgroups()) return;
    for (const uint32_t size : {16u, 64u}) {
      const auto ran = run_emulated(size, DeviceClass::kDiscrete,
                                    {"softmax/plain/normal", "layer_norm/plain", "argmax/normal"});
      CHECK_MESSAGE(ran.size() == 3, size << " lanes: " << ran.size() << " kernels");
    }
  }
}

}  // namespace vkformer::testing
