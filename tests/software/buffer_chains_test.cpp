// Access chains into buffers: shared ones in the SPIR-V of every kernel, and what such kernels
// compute.
#include "software/buffer_chains.h"

#include <map>
#include <set>

#include "conformance/planted.h"
#include "kernels/spirv_instructions.h"
#include "vkformer/conformance.h"

namespace vkformer::testing {
namespace {

// Numbers of the SPIR-V specification.
enum : uint32_t {
  kTypePointer = 32,
  kVariable = 59,
  kAccessChain = 65,
  kDecorate = 71,
  kLabel = 248
};
constexpr uint32_t kStorageBuffer = 12;

std::vector<Instruction> without_chains(const std::vector<uint32_t>& words) {
  std::vector<Instruction> kept;
  for (Instruction& in : instructions(words)) {
    if (in.op != kAccessChain && in.op != kTypePointer && in.op != kDecorate)
      kept.push_back(std::move(in));
  }
  return kept;
}

// The most chains of a block that start at a storage buffer and have the same first indices.
size_t most_alike(const std::vector<uint32_t>& words) {
  std::set<uint32_t> buffers;
  std::map<std::vector<uint32_t>, size_t> alike;
  size_t most = 0;
  for (const Instruction& in : instructions(words)) {
    if (in.op == kVariable && in.operands[2] == kStorageBuffer) buffers.insert(in.operands[1]);
    if (in.op == kLabel) alike.clear();
    if (in.op != kAccessChain || buffers.count(in.operands[2]) == 0) continue;
    most = std::max(most, ++alike[{in.operands.begin() + 2, in.operands.begin() + 4}]);
  }
  return most;
}

template <class F>
void for_every_kernel(const F& f) {
  for (size_t k = 0; k < static_cast<size_t>(KernelId::kCount); ++k) {
    const auto id = static_cast<KernelId>(k);
    if (kernel_info(id).words != 0) f(id);  // else it needs a feature that this build omits
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every kernel's blocks have one chain to a buffer's member, and all else stays") {
    size_t shared_kernels = 0;
    for_every_kernel([&](KernelId id) {
      INFO(std::string(kernel_info(id).name));
      const std::vector<uint32_t> words = kernel_spirv(id);
      const std::vector<uint32_t> shared = share_buffer_chains(words);
      const auto before = reflect_spirv(words), after = reflect_spirv(shared);
      REQUIRE(before);
      REQUIRE_MESSAGE(after, after.error().message);
      CHECK(after->bindings.size() == before->bindings.size());
      CHECK(after->has_table == before->has_table);
      CHECK(after->spec_ids == before->spec_ids);
      CHECK(without_chains(shared) == without_chains(words));
      CHECK(most_alike(shared) <= 1);
      CHECK(share_buffer_chains(shared) == shared);
      if (most_alike(words) > 1) ++shared_kernels;
    });
    CHECK(shared_kernels > 50);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("kernels with shared chains compute what they did") {
    if (!have_test_device()) return;
    PlantedKernels planted;
    for_every_kernel([&](KernelId id) { planted[id] = share_buffer_chains(kernel_spirv(id)); });
    const Device device = planted_device(planted, "none");
    ConformanceOptions options;
    options.filters = {"matmul/f32/5x8x128", "layer_norm/plain/5x33", "embedding/f32/7x33",
                       "softmax/plain/normal/2x3x5x33", "attention/causal/1x4x2x7x33"};
    options.repeats = 1;
    const auto report = run_conformance(device, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    CHECK(report->checks.size() >= options.filters.size());
    for (const ConformanceCheck& check : report->checks) {
      CHECK_MESSAGE(!check.failed(), check.name);
    }
  }
}

}  // namespace vkformer::testing
