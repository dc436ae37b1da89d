// Checks of the checks: comparators that must fail, and kernels with an off-by-one in them.
#include <algorithm>

#include "conformance/check.h"
#include "conformance/planted.h"
#include "support/operator_check.h"
#include "vkformer/conformance.h"

namespace vkformer::testing {
namespace {

using conformance::compare;
using conformance::Expected;

Expected three() {
  return {reference::Array{{3}, {1, 2, 3}}, reference::tolerance_for(DType::kF32, 1)};
}

// The place is that of an i < n in the kernel's SPIR-V. There are others which change nothing:
// where a workgroup is full, or where a guard only skips what a later one skips too.
struct Subject {
  const char* kernel;
  const char* filter;  // a check that runs it
  size_t place;
};
constexpr Subject kSubjects[] = {
    {"rms_norm_row__f32_f32_f32", "rms_norm/plain/7x64", 0},
    {"head_norm_row__f32_f32_f32", "head_norm/rms/5x3x33x140/3", 0},
    {"gated_norm_row__f32_f32_f32", "gated_norm/gate-first/5x3x33x1", 0},
    {"causal_conv_full__f32_f32_f32", "causal_conv/full/2x5x4x7", 0},
    {"state_scan_full__f32_none_f32", "state_scan/selective/full/2x19x4x2x16x8", 10},
    {"softmax_row__f32_none_f32", "softmax/plain/normal/2x3x5x33", 0},
    {"layer_norm_row__f32_f32_f32", "layer_norm/plain/5x33", 2},
    {"mean_pool_row__f32_none_f32", "mean_pool/normalized-normal/3x5x33", 2},
    {"matmul_rows__f32_f32_f32", "matmul/f32/5x8x128", 36},
    {"matmul_tiled__f32_f32_f32", "matmul/f32/", 11},
    {"attention_tiled__f32_f32_f32", "attention/causal/1x4x2x7x33", 31},
    {"unfold_row__f32_none_f32", "unfold/normal/2x3x16x16", 0},
    {"gather_rows_run__f32_none_f32", "gather_rows/plain/7x33", 1},
    {"embedding_row__u32_f32_f32", "embedding/f32/7x33", 3},
};

// Whether some check of the kernel fails with that SPIR-V in its place; those of others must not.
bool is_caught(const Subject& subject, std::vector<uint32_t> words) {
  const Device device =
      planted_device({{kernel_named(subject.kernel), std::move(words)}}, "none", Tier::kBaseline);
  ConformanceOptions options;
  options.filters = {subject.filter};
  options.repeats = 1;
  const auto report = run_conformance(device, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  int ran = 0;
  bool caught = false;
  for (const ConformanceCheck& check : report->checks) {
    const auto& kernels = check.kernels;
    if (std::find(kernels.begin(), kernels.end(), subject.kernel) == kernels.end()) {
      CHECK_MESSAGE(!check.failed(), check.name);
      continue;
    }
    ++ran;
    caught = caught || check.failed();
  }
  CHECK(ran > 0);
  return caught;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("the comparator fails for NaN, infinities, shapes and values that are off") {
    const auto error = [](Shape shape, const std::vector<float>& values) {
      return compare("y", Tensor::from_floats(std::move(shape), values), three()).error;
    };
    CHECK(error({3}, {1, 2, 3}) == 0);
    CHECK(error({3}, {1, 2, 3.0000005f}) <= 1);
    CHECK(error({3}, {1, kNan, 3}) > 1);
    CHECK(error({3}, {1, kInfinity, 3}) > 1);
    CHECK(error({3}, {1, 2, 3.001f}) > 1);
    CHECK(error({1, 3}, {1, 2, 3}) > 1);
    CHECK(error({2}, {1, 2}) > 1);
    CHECK_FALSE(
        compare("y", Tensor::from_floats({2}, std::vector<float>{1, 2}), three()).message.empty());
    Expected special = three();
    special.values[0] = kNan;
    special.values[1] = -kInfinity;
    const auto against = [&](const std::vector<float>& values) {
      return compare("y", Tensor::from_floats({3}, values), special).error;
    };
    CHECK(against({kNan, -kInfinity, 3}) == 0);
    CHECK(against({0, -kInfinity, 3}) > 1);
    CHECK(against({kNan, kInfinity, 3}) > 1);
    CHECK(against({kNan, kNan, 3}) > 1);
  }

  TEST_CASE("the comparator allows denormals to become zeros, and no number to become one") {
    const Expected tiny{reference::Array{{1}, {1e-40}}, {}};
    CHECK(compare("y", Tensor::from_floats({1}, std::vector<float>{0}), tiny).error <= 1);
    const Expected small{reference::Array{{1}, {1e-37}}, {}};
    CHECK(compare("y", Tensor::from_floats({1}, std::vector<float>{0}), small).error > 1);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("an off-by-one in each of ten kernels is caught") {
    if (!have_test_device()) return;
    for (const Subject& subject : kSubjects) {
      const KernelId kernel = kernel_named(subject.kernel);
      const bool caught =
          is_caught(subject, with_fault(kernel, kULessThan, kULessThanEqual, subject.place));
      CHECK_MESSAGE(caught, std::string(subject.kernel));
    }
  }
}

}  // namespace vkformer::testing
