// NaN on drivers of every kind: GLSL leaves open what a comparison with it gives. NVIDIA's compiler
// makes maxima of selections, which drops the NaN; a true comparison is what that comes to.
#include "conformance/planted.h"
#include "vkformer/conformance.h"

namespace vkformer::testing {
namespace {

// The comparisons of SPIR-V specification 1.6, section 3.49, that are false of a NaN. The number
// after each is the one that is true of it.
constexpr uint16_t kOrdered[] = {180, 182, 184, 186, 188, 190};

// Every kernel, with comparisons that are true of a NaN.
PlantedKernels kernels_of_true_comparisons() {
  PlantedKernels kernels;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const auto id = static_cast<KernelId>(i);
    std::vector<uint32_t> words = kernel_spirv(id);
    bool changed = false;
    for (const uint16_t opcode : kOrdered) {
      for (const size_t place : places_of(words, opcode)) {
        words[place] += 1;
        changed = true;
      }
    }
    if (changed) kernels[id] = std::move(words);
  }
  return kernels;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("NaN and infinity come through kernels whose comparisons with NaN are true") {
    if (!have_test_device()) return;
    const Device device = planted_device(kernels_of_true_comparisons(), "none");
    ConformanceOptions options;
    options.filters = {"special"};
    options.repeats = 1;
    const auto report = run_conformance(device, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    CHECK(report->checks.size() > 50);
    for (const ConformanceCheck& check : report->checks) {
      CHECK_MESSAGE(!check.failed(), check.name << ": " << check.message);
    }
  }
}

}  // namespace vkformer::testing
