// Every kernel that reproducible plans may use, rewritten: what is left of open operations.
#include "reproducible/pin_arithmetic.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "kernels/catalogue.h"
#include "kernels/reflect.h"
#include "kernels/spirv.h"

namespace vkformer::testing {
namespace {

using namespace spirv;

std::vector<KernelId> baseline_kernels() {
  std::vector<KernelId> list;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const auto id = static_cast<KernelId>(i);
    if (kernel_info(id).features == 0) list.push_back(id);
  }
  return list;
}

// What a module does with floats.
struct Floats {
  int open = 0;        // operations whose result Vulkan leaves open
  int contracted = 0;  // additions and products that a driver may join
};
Floats floats_in(const std::vector<uint32_t>& words) {
  std::set<uint32_t> marked;
  Floats found;
  for_each_instruction(words, [&](uint32_t op, std::span<const uint32_t> in) {
    if (op == kOpDecorate && in[1] == kNoContraction) marked.insert(in[0]);
    if (op == kOpFDiv || op == kOpDot || op == kOpFConvert) ++found.open;
    if (op == kOpExtInst && in[3] != kExtFloor && in[3] < 64 && in[3] != 5 && in[3] != 7) {
      const bool integers =
          (in[3] >= 38 && in[3] <= 45) && in[3] != kExtFMax && in[3] != kExtFClamp;
      found.open += integers ? 0 : 1;
    }
    if (op == kOpFAdd || op == kOpFSub || op == kOpFMul || op == kOpVectorTimesScalar) {
      found.contracted += marked.count(in[1]) == 0 ? 1 : 0;
    }
  });
  return found;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every baseline kernel has a reproducible form with the same interface") {
    const ArithmeticModes all_modes[] = {
        {},
        {.flush_denormals = true, .round_to_even = true, .keep_specials = true},
        {.guard_denormals = true}};
    const std::vector<KernelId> kernels = baseline_kernels();
    CHECK(kernels.size() > 100);
    for (const KernelId id : kernels) {
      const std::string name(kernel_info(id).name);
      CAPTURE(name);
      const std::vector<uint32_t> words = kernel_spirv(id);
      const auto before = reflect_spirv(words);
      REQUIRE(before.ok());
      for (const ArithmeticModes& modes : all_modes) {
        const auto pinned = pin_arithmetic(words, modes);
        REQUIRE_MESSAGE(pinned.ok(), pinned.error().message);
        const auto after = reflect_spirv(*pinned);
        REQUIRE_MESSAGE(after.ok(), after.error().message);
        CHECK(after->bindings.size() == before->bindings.size());
        CHECK(after->push_bytes == before->push_bytes);
        CHECK(after->spec_ids == before->spec_ids);
        const Floats floats = floats_in(*pinned);
        CHECK(floats.open == 0);
        CHECK(floats.contracted == 0);
      }
    }
  }

  TEST_CASE("a kernel with an operation that has no reproducible form is refused by name") {
    int refused = 0;
    for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
      const auto id = static_cast<KernelId>(i);
      const KernelInfo& info = kernel_info(id);
      if (info.features != kFeature_subgroup) continue;
      const auto pinned = pin_arithmetic(kernel_spirv(id), {});
      if (pinned) continue;
      ++refused;
      CHECK(pinned.error().message.find("reproducible form") != std::string::npos);
    }
    CHECK(refused > 0);  // sums over subgroups
  }
}

}  // namespace vkformer::testing
