// Every strategy and variant of the matrix product, forced, against the double-precision reference.
#include <set>

#include "ops/matmul_run.h"

namespace vkformer::testing {
namespace {

using Addend = ProductCase::Addend;
using Layout = ProductCase::Layout;

// 1, primes, around every tile in use, one real model's, as M, N, K.
constexpr uint32_t kSizes[][3] = {
    {1, 1, 1},   {1, 7, 5},     {2, 8, 1},    {3, 1, 7},    {4, 31, 16},   {5, 17, 33},
    {7, 15, 31}, {8, 129, 4},   {9, 33, 64},  {13, 65, 13}, {14, 127, 9},  {15, 16, 3},
    {16, 64, 8}, {17, 128, 17}, {31, 63, 15}, {33, 32, 65}, {65, 66, 130}, {145, 24, 768},
};

// The fused parts take turns, so that every one meets several sizes.
ProductCase case_of(size_t i, DType weight, Layout layout) {
  constexpr Addend kAddends[] = {Addend::kNone, Addend::kAfter, Addend::kMatrix, Addend::kRow};
  ProductCase c{.m = kSizes[i][0], .n = kSizes[i][1], .k = kSizes[i][2], .weight = weight};
  c.layout = layout;
  c.batch = i % 5 == 4 ? 3 : 1;
  c.a_gap = i % 2 == 0 ? (4 - c.k % 4) % 4 : 3;
  c.a_offset = i % 2 == 0 ? 4 : 1;
  c.y_gap = static_cast<uint32_t>(i % 3);
  c.addend = kAddends[i % 4];
  c.alpha = i % 3 == 1 ? -0.5f : 1.0f;
  c.beta = i % 3 == 2 ? 0.75f : 1.0f;
  c.activation = i == 5 || i == 14 ? ActivationKind::kGelu : ActivationKind::kNone;
  c.seed = static_cast<uint32_t>(1000 + i);
  if (layout == Layout::kPacked) {
    c.bias = i % 2 == 1;
    return c;
  }
  c.b_gap = static_cast<uint32_t>(i % 4);
  c.trans_a = i % 4 >= 2;
  c.trans_b = i % 2 == 1;
  return c;
}

// Devices to run on: every tier's, and the test device itself where it multiplies halves.
std::vector<std::shared_ptr<VulkanDevice>> devices() {
  std::vector<std::shared_ptr<VulkanDevice>> list;
  for (const TierDevice& device : tier_devices()) {
    if (!device.wide) list.push_back(device.device);
  }
  if (!list.empty() && test_device()->impl()->caps().fp16()) {
    list.push_back(test_device()->impl());
  }
  return list;
}

void add_run(std::vector<ProductRun>& runs, const DeviceCaps& caps, Precision precision,
             MatmulStrategy strategy, const std::string& what) {
  const bool beside = what.find(',') != std::string::npos || precision == Precision::kF16;
  runs.push_back(
      {std::string(tier_name(caps.tier)) + " " + what, caps, precision, strategy, beside});
}

// The strategies for few and for many rows with packed weights, as a device of these capabilities
// and one with narrower loads run them.
void add_packed_runs(std::vector<ProductRun>& runs, DeviceCaps caps, Precision precision) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  add_run(runs, caps, precision, MatmulStrategy::kRows, "rows");
  if (software) add_run(runs, caps, precision, MatmulStrategy::kWide, "wide");
  if (caps.int64() && precision == Precision::kF32) {
    caps.has_int64 = false;
    add_run(runs, caps, precision, MatmulStrategy::kRows, "rows, narrow");
    caps.fast_uniform_loads = !caps.fast_uniform_loads;
    if (software) add_run(runs, caps, precision, MatmulStrategy::kWide, "wide, narrow");
  }
  if (!software) return;
  caps.device_class = DeviceClass::kDiscrete;
  add_run(runs, caps, precision, MatmulStrategy::kRows, "rows, discrete");
}

std::vector<ProductRun> packed_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) {
    add_packed_runs(runs, caps, Precision::kF16);
  } else {
    add_packed_runs(runs, caps, Precision::kF32);
    add_run(runs, caps, Precision::kF32, MatmulStrategy::kTiled, "tiled");
  }
  return runs;
}

std::vector<ProductRun> strided_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) return runs;  // no strided variant multiplies halves
  if (caps.device_class == DeviceClass::kSoftware) {
    add_run(runs, caps, Precision::kF32, MatmulStrategy::kStrided, "strided");
  }
  add_run(runs, caps, Precision::kF32, MatmulStrategy::kTiled, "tiled");
  return runs;
}

void check_case(const std::shared_ptr<VulkanDevice>& device, const ProductRun& run,
                const ProductCase& c) {
  CAPTURE(run.name);
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  const Product product = make_product(c);
  const DType arithmetic = run.precision == Precision::kF16 ? DType::kF16 : DType::kF32;
  check_product(c, product, run_product(device, product, run), tolerance_for(arithmetic, c.k));
}

// Nearly every pair of a run and a size is a pipeline to compile, so variants beside a tier's own
// take every third size, and so do weights in f16. More rows than a strategy is meant for show
// nothing new.
bool worth_running(const ProductRun& run, const ProductCase& c, size_t i) {
  if (run.strategy == MatmulStrategy::kRows && c.m > 17) return false;
  const bool all = !run.beside && c.weight == DType::kF32;
  return all || i % 3 == (c.weight == DType::kF32 ? 1 : 2);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul with packed weights agrees with the reference in every strategy") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          for (DType weight : {DType::kF32, DType::kF16}) {
            const ProductCase c = case_of(i, weight, Layout::kPacked);
            if (worth_running(run, c, i)) check_case(device, run, c);
          }
        }
      }
    }
  }

  TEST_CASE("matmul of any strides agrees with the reference in every strategy") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : strided_runs(device->caps())) {
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          check_case(device, run, case_of(i, DType::kF32, Layout::kStrided));
        }
      }
    }
  }

  TEST_CASE("matmul applies every activation, and finite ones stay finite far out") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        if (run.beside || run.strategy == MatmulStrategy::kWide) continue;
        for (uint32_t kind = 1; kind <= 8; ++kind) {
          ProductCase c{.m = 3, .n = 9, .k = 6, .bias = true, .alpha = 40};
          c.activation = static_cast<ActivationKind>(kind);
          const Product product = make_product(c);
          CAPTURE(run.name);
          CAPTURE(kind);
          check_product(c, product, run_product(device, product, run), {2e-4, 2e-5});
        }
      }
    }
  }

  TEST_CASE("a row of matmul has the same bits whatever other rows there are") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        CAPTURE(run.name);
        const bool software = run.caps.device_class == DeviceClass::kSoftware;
        // On other devices the rows strategy halves its slices of K from 5 rows on.
        const bool few = run.strategy == MatmulStrategy::kRows && !software;
        ProductCase c{.m = 40, .n = 21, .k = 77, .bias = true};
        Product product = make_product(c);
        std::vector<uint32_t> first;
        for (uint32_t m : {1u, 4u, 5u, 8u, 9u, 17u, 40u}) {
          if (few && m <= 4) continue;
          product.problem.params.m = m;
          const std::vector<uint32_t> y = run_product(device, product, run, 1);
          const std::vector<uint32_t> row = product_row(product, y, 0);
          if (first.empty()) first = row;
          CHECK(row == first);
        }
      }
    }
  }

  TEST_CASE("matmul passes NaN and infinity on in every strategy") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        CAPTURE(run.name);
        ProductCase c{.m = 5, .n = 19, .k = 23, .activation = ActivationKind::kRelu};
        Product product = make_product(c);
        product.a.data[1 * 23 + 22] = kNan;
        product.a.data[3 * 23 + 1] = kInfinity;
        const Placed a = place(product.a, 0, 0, false);
        product.a_words = a.words;
        const Tolerance tolerance =
            tolerance_for(run.precision == Precision::kF16 ? DType::kF16 : DType::kF32, 23);
        check_product(c, product, run_product(device, product, run), tolerance);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("matmul picks its strategy by capacity and layout alone") {
    DeviceCaps software = caps_of_tier(Tier::kSubgroup);
    software.device_class = DeviceClass::kSoftware;
    const DeviceCaps discrete = caps_of_tier(Tier::kSubgroup);
    for (uint32_t m : {1u, 3u, 4u, 8u, 9u, 100u}) {
      ProductCase c{.m = m, .n = 12, .k = 20};
      MatmulProblem problem = make_product(c).problem;
      CHECK(pick_matmul(problem, discrete) ==
            (m <= 8 ? MatmulStrategy::kRows : MatmulStrategy::kTiled));
      CHECK(pick_matmul(problem, software) ==
            (m <= 3 ? MatmulStrategy::kRows : MatmulStrategy::kWide));
      problem.params.a_col_stride = 2;
      CHECK(pick_matmul(problem, discrete) == MatmulStrategy::kTiled);
      CHECK(pick_matmul(problem, software) == MatmulStrategy::kStrided);
    }
  }

  TEST_CASE("matmul's launches keep the baseline's limits on invocations and cover every element") {
    for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
      for (DeviceClass kind : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
        DeviceCaps caps = caps_of_tier(tier);
        caps.device_class = kind;
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          const ProductCase c = case_of(i, DType::kF32, Layout::kPacked);
          const MatmulProblem problem = make_product(c).problem;
          const MatmulStrategy strategy = pick_matmul(problem, caps);
          const Dispatch d = launch_matmul({}, problem, caps, Precision::kF32, strategy);
          CHECK(d.spec[0] <= caps.limits.max_invocations);
          CHECK(d.push.size() <= caps.limits.max_push_bytes);
          CHECK(d.groups[2] == c.batch);
          CHECK(d.flops == 2.0 * c.batch * c.m * c.n * c.k);
        }
      }
    }
  }
}

}  // namespace vkformer::testing
