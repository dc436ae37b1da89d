// Every kernel that reproducible plans may use, rewritten: what is left of open operations.
#include "reproducible/pin_arithmetic.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "kernels/catalogue.h"
#include "kernels/reflect.h"
#include "support/pinned_floats.h"

namespace vkformer::testing {
namespace {

// All but what precision int8 alone runs: its rounding has no form here, and needs none.
std::vector<KernelId> baseline_kernels() {
  std::vector<KernelId> list;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const auto id = static_cast<KernelId>(i);
    const bool of_int8 = std::string_view(kernel_info(id).name).starts_with("quantize_rows");
    if (kernel_info(id).features == 0 && !of_int8) list.push_back(id);
  }
  return list;
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
        const PinnedFloats floats = floats_in(*pinned);
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
