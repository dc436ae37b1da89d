// A build with VKFORMER_WITH_SOFTWARE_KERNELS=OFF: no device, whatever its compiler is said to be,
// gets a kernel that only software drivers use.
#include "software/strategies.h"
#include "ops/attention_cases.h"
#include "ops/matmul_run.h"
#include "ops/matmul_table.h"
#include "software/compiler.h"

namespace vkformer::testing {
namespace {

using enum MatmulStrategy;

constexpr MatmulChoice kSoftwareChoices[] = {
    {kAnyRows, kStream},   {kAnyRows, kWide, 8, 1}, {kAnyRows, kLiteral, 8},
    {kAnyRows, kSlabs, 4}, {kAnyRows, kStationary}, {kAnyRows, kStrided, 8, 1},
};

// Software devices whose compilers ask for all that such a device may.
std::vector<DeviceCaps> software_devices() {
  std::vector<DeviceCaps> list;
  for (const Tier tier : {Tier::kBaseline, Tier::kSubgroup, Tier::kFp16}) {
    for (const uint32_t size : {4u, 8u}) {
      DeviceCaps caps = caps_of_tier(tier);
      caps.device_class = DeviceClass::kSoftware;
      caps.subgroup_size = size;
      caps.compiler = {.fast_uniform_loads = true,
                       .streams_uniform_loads = true,
                       .wants_literals = size == 4,
                       .has_quads = true,
                       .has_int64 = size == 8,
                       .max_table_parts = 500000};
      list.push_back(caps);
    }
  }
  return list;
}

void check_kernels(const Graph& graph, const DeviceCaps& caps) {
  for (const Precision precision : {Precision::kF32, Precision::kF16}) {
    const auto plan = make_plan(graph, caps, precision);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    for (const Dispatch& d : plan->dispatches) {
      const KernelInfo& kernel = kernel_info(d.kernel);
      CAPTURE(kernel.name);
      CHECK((kernel.features & (kFeature_software | kFeature_absent)) == 0);
      CHECK(kernel.words > 0);
    }
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("kernels that only software drivers use are not in this build") {
    CHECK_FALSE(has_software_strategies());
    size_t software = 0;
    for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
      const KernelInfo& kernel = kernel_info(static_cast<KernelId>(i));
      if ((kernel.features & kFeature_software) == 0) continue;
      ++software;
      CAPTURE(kernel.name);
      CHECK((kernel.features & kFeature_absent) != 0);
      CHECK(kernel_spirv(static_cast<KernelId>(i)).empty());
    }
    CHECK(software > 20);
  }

  TEST_CASE("software devices get the products of GPUs, tuned choices included") {
    for (DeviceCaps caps : software_devices()) {
      for (const MatmulChoice& choice : kSoftwareChoices) CHECK_FALSE(can_run(choice, caps));
      const std::vector<MatmulChoice> planted(std::begin(kSoftwareChoices),
                                              std::end(kSoftwareChoices));
      caps.tuned_matmul = {planted, planted};
      for (const uint32_t m : {1u, 5u, 9u, 40u, 300u}) {
        for (MatmulProblem problem : {make_product({.m = m, .n = 40, .k = 256}).problem,
                                      make_product({.m = m, .n = 40, .k = 21}).problem}) {
          const MatmulStrategy strategy = pick_matmul(problem, caps).strategy;
          CHECK((strategy == kRows || strategy == kTiled));
          problem.params.a_col_stride = 2;
          CHECK(pick_matmul(problem, caps).strategy == kTiled);
        }
        for (const MatmulChoice& choice : matmul_candidates(caps, m)) {
          CHECK((choice.strategy == kRows || choice.strategy == kTiled));
        }
      }
    }
  }

  TEST_CASE("software devices get the attention and the hashes of GPUs") {
    for (const DeviceCaps& caps : software_devices()) {
      AttentionCase c{.queries = 17, .keys = 17, .head_width = 64, .value_width = 64};
      check_kernels(prepare_attention(c, make_problem(c)).graph, caps);
      c.masks.causal = true;
      check_kernels(prepare_attention(c, make_problem(c)).graph, caps);
      CHECK_FALSE(software_lsh_hash(caps, caps.subgroup_size));
      Dispatch d;
      CHECK_FALSE(software_attention_step(caps, {}, {}, d));
    }
  }

  TEST_CASE("no driver's compiler is described as one that asks for more") {
    for (const char* driver : {"SwiftShader driver 5.0.0", "llvmpipe Mesa 26.2.6 (LLVM 20)"}) {
      DeviceCaps caps;
      caps.device_class = DeviceClass::kSoftware;
      caps.driver = driver;
      describe_software_compiler(caps);
      CHECK_FALSE(caps.compiler.wants_literals);
      CHECK_FALSE(caps.compiler.fast_uniform_loads);
      CHECK_FALSE(caps.compiler.streams_uniform_loads);
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a device of this build asks for nothing that only software drivers have") {
    if (!have_test_device()) return;
    const CompilerTraits& compiler = vulkan_of(*test_device())->caps().compiler;
    CHECK_FALSE(compiler.wants_literals);
    CHECK_FALSE(compiler.streams_uniform_loads);
    CHECK(compiler.max_table_parts == 0);
  }
}

}  // namespace vkformer::testing
