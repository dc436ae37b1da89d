// Matrix products by cooperative matrices. Every unit that the device lists and every block,
// forced, against the double-precision reference. Also the self-check that stands before their use.
#include <set>

#include "ops/matmul_run.h"
#include "params/activation.h"
#include "reference/gated_activation.h"
#include "support/matrix_units.h"

namespace vkformer::testing {
namespace {

using Addend = ProductCase::Addend;
using enum MatmulStrategy;

// As M, N, K: 1, primes, around units of 8 and 16, blocks of 32, 64 and 128, and panels.
constexpr uint32_t kSizes[][3] = {
    {1, 1, 1},     {2, 7, 33},   {3, 65, 5},   {7, 16, 31},   {8, 9, 32},
    {9, 64, 15},   {15, 17, 64}, {16, 33, 16}, {17, 127, 65}, {31, 31, 29},
    {33, 129, 40}, {63, 8, 96},  {65, 66, 97}, {129, 130, 7}, {145, 24, 768},
};

ProductCase case_of(size_t i, MatrixFormat weight) {
  constexpr Addend kAddends[] = {Addend::kNone, Addend::kAfter, Addend::kMatrix, Addend::kRow};
  ProductCase c{.m = kSizes[i][0], .n = kSizes[i][1], .k = kSizes[i][2], .weight = weight};
  c.batch = i % 5 == 4 ? 3 : 1;
  c.a_gap = i % 2 == 0 ? (4 - c.k % 4) % 4 : 3;
  c.a_offset = i % 2 == 0 ? 4 : 1;
  c.y_gap = static_cast<uint32_t>(i % 3);
  c.bias = i % 2 == 1;
  c.addend = kAddends[i % 4];
  c.alpha = i % 3 == 1 ? -0.5f : 1.0f;
  c.beta = i % 3 == 2 ? 0.75f : 1.0f;
  c.activation = i == 5 || i == 12 ? ActivationKind::kGelu : ActivationKind::kNone;
  c.seed = static_cast<uint32_t>(2000 + i);
  return c;
}

// Every unit with every block that fits.
std::vector<ProductRun> units_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  for (const MatmulChoice& choice : matmul_candidates(caps, 500, Precision::kF16)) {
    if (choice.strategy != kUnits) continue;
    runs.push_back({choice_text(choice), caps, Precision::kF16, choice});
  }
  CHECK(runs.size() >= caps.matrix_units.size());
  return runs;
}

std::vector<uint32_t> check_run(const std::shared_ptr<VulkanDevice>& device, const ProductRun& run,
                                const ProductCase& c, const Product& product,
                                double magnitude = 1) {
  CAPTURE(run.name);
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(format_name(c.weight));
  std::vector<uint32_t> y = run_product(device, product, run);
  Tolerance tolerance = tolerance_for(DType::kF16, c.k);
  tolerance.absolute *= magnitude;
  check_product(c, product, y, tolerance);
  return y;
}

void set_a(const ProductCase& c, Product& product, uint32_t row, uint32_t step, double value) {
  product.a.data[size_t{row} * c.k + step] = value;
  product.a_words = place(product.a, c.a_offset, c.a_gap, false).words;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul by matrix units agrees with the reference at every unit, block and format") {
    const auto device = units_device();
    if (!device) return;
    for (const ProductRun& run : units_runs(device->caps())) {
      for (size_t i = 0; i < std::size(kSizes); ++i) {
        // Nearly every pair is a pipeline to compile; large blocks and formats take turns.
        for (size_t format = 0; format < std::size(kMatrixFormats); ++format) {
          const size_t turn = run.choice.rows == 32 && format < 2 ? 1 : 4;
          if ((i + format) % turn != 0) continue;
          const ProductCase c = case_of(i, kMatrixFormats[format]);
          check_run(device, run, c, make_product(c));
        }
      }
    }
  }

  TEST_CASE("matmul by matrix units multiplies what is beyond f16 as f32, NaN and infinity too") {
    const auto device = units_device();
    if (!device) return;
    for (const ProductRun& run : units_runs(device->caps())) {
      ProductCase c{.m = 37, .n = 70, .k = 75, .bias = true};
      Product product = make_product(c);
      const std::vector<uint32_t> plain = run_product(device, product, run, 1);
      set_a(c, product, 3, 0, 65505);
      set_a(c, product, 3, 74, -3e30);
      set_a(c, product, 36, 40, 1e6);
      const std::vector<uint32_t> wide = check_run(device, run, c, product, 1e28);
      // Rows without such elements have the bits that they had.
      for (const uint32_t row : {0u, 2u, 4u, 35u}) {
        CHECK(product_row(product, wide, row) == product_row(product, plain, row));
      }
      set_a(c, product, 5, 1, kNan);
      set_a(c, product, 6, 70, -kInfinity);
      check_run(device, run, c, product, 1e28);
      // Weights beyond f16, of which only f32 and bf16 can store any.
      for (const MatrixFormat format : {MatrixFormat::kF32, MatrixFormat::kBF16}) {
        c.weight = format;
        product = make_product(c);
        product.b.data[40 * 70 + 66] = 98304;  // exact in bf16
        const std::vector<float> values(product.b.data.begin(), product.b.data.end());
        const auto packed = pack_matrix(values, {c.n, c.k, MatrixOrder::kInOut}, {}, format);
        REQUIRE(packed.ok());
        std::copy(packed->words.begin(), packed->words.end(), product.b_words.begin());
        check_run(device, run, c, product, 1e5);
      }
    }
  }

  TEST_CASE("a row of matmul by matrix units has the same bits whatever other rows there are") {
    const auto device = units_device();
    if (!device) return;
    for (const ProductRun& run : units_runs(device->caps())) {
      const ProductCase c{.m = 40, .n = 21, .k = 77, .bias = true};
      Product product = make_product(c);
      std::vector<uint32_t> first;
      for (const uint32_t m : {1u, 4u, 9u, 17u, 33u, 40u}) {
        product.problem.params.m = m;
        const auto row = product_row(product, run_product(device, product, run, 1), 0);
        if (first.empty()) first = row;
        CHECK(row == first);
      }
    }
  }

  TEST_CASE("matmul by matrix units gates pairs of columns") {
    const auto device = units_device();
    if (!device) return;
    for (const ProductRun& run : units_runs(device->caps())) {
      ProductCase c{.m = 35, .n = 74, .k = 50, .bias = true};
      Product product = make_product(c);
      const Array z = expected_product(c, product);
      Array halves = z;
      for (int64_t i = 0; i < z.size(); ++i) {
        const int64_t row = i / 74, column = i % 74;
        halves[row * 74 + column % 2 * 37 + column / 2] = z[i];
      }
      const auto silu = reference::activation_from_name(activation_name(ActivationKind::kSilu));
      const Array expected = reference::gated_activation(halves, silu.value()).value();
      product.problem.params.activation =
          static_cast<uint32_t>(ActivationKind::kSilu) | kActivationGate;
      product.problem.params.y_row_stride = 37;
      const std::vector<uint32_t> words = run_product(device, product, run);
      Tensor y = Tensor::zeros(DType::kF32, {1, 35, 37});
      std::memcpy(y.bytes.data(), words.data(), y.bytes.size());
      check_close(y, expected, tolerance_for(DType::kF16, c.k));
      CHECK(std::all_of(words.begin() + 35 * 37, words.end(),
                        [](uint32_t word) { return word == kGap; }));
    }
  }

  TEST_CASE("matrix units that compute wrongly fail their self-check and are left out") {
    if (!units_device()) return;
    check_self_check(KernelId::matmul_units__f32_any_f32_matrix, 8192, [](const DeviceCaps& caps) {
      Graph graph;
      const TensorId x = graph.add_external("x", DType::kF32, {70, 40});
      const TensorId words = graph.add_external("weight", DType::kU32, {64 * 40});
      REQUIRE(add_linear(graph, x, {.tensor = words, .n = 60, .k = 40}, {}).ok());
      const auto plan = make_plan(graph, caps, Precision::kF16);
      REQUIRE(plan.ok());
      return plan->dispatches.at(0).kernel;
    });
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("products of halves take matrix units on GPUs that have them, the largest first") {
    const DeviceCaps caps = caps_with_units({{16, 8, 8}, {16, 16, 16}, {16, 8, 16}});
    MatmulProblem problem = make_product({.m = 300, .n = 12, .k = 20}).problem;
    const auto pick = [&](const DeviceCaps& on, uint32_t m, Precision precision) {
      problem.params.m = m;
      return pick_matmul(problem, on, precision);
    };
    CHECK(pick(caps, 300, Precision::kF32).strategy == kTiled);
    CHECK(pick(caps, 300, Precision::kF16) == MatmulChoice{kAnyRows, kUnits, 128, 1});
    CHECK(pick(caps, 64, Precision::kF16) == MatmulChoice{256, kUnits, 64, 1});
    CHECK(pick(caps, 20, Precision::kF16) == MatmulChoice{32, kUnits, 32, 1});
    CHECK(pick(caps, 8, Precision::kF16).strategy == kRows);
    DeviceCaps other = caps;
    other.tier = Tier::kFp16;
    CHECK(pick(other, 300, Precision::kF16).strategy == kTiled);
    other = caps;
    other.device_class = DeviceClass::kSoftware;
    CHECK(pick(other, 300, Precision::kF16).strategy != kUnits);
    // Smaller blocks where the large ones need more memory, or invocations, than there are.
    other = caps;
    other.limits.max_shared_bytes = 16384;
    CHECK(pick(other, 300, Precision::kF16) == MatmulChoice{kAnyRows, kUnits, 32, 1});
    other = caps;
    other.max_unit_subgroups = 4;
    CHECK(pick(other, 300, Precision::kF16) == MatmulChoice{kAnyRows, kUnits, 32, 1});
    other.limits.max_invocations = 32;
    CHECK(pick(other, 300, Precision::kF16).strategy == kTiled);
    CHECK(pick(caps_with_units({{64, 64, 64}, {3, 3, 3}, {0, 0, 0}}), 300, Precision::kF16)
              .strategy == kTiled);
    // Not in panels: another layout.
    problem.params.b_row_stride = 72;
    CHECK(pick(caps, 300, Precision::kF16).strategy == kTiled);
  }

  TEST_CASE("launches by matrix units cover every element with whole subgroups") {
    for (const uint32_t subgroup : {4u, 8u, 16u, 32u, 64u}) {
      DeviceCaps caps =
          caps_with_units({{16, 16, 16}, {8, 8, 16}, {8, 16, 16}, {16, 8, 8}, {8, 8, 8}});
      caps.unit_lanes = subgroup;
      std::set<int> tried;
      for (const MatmulChoice& choice : matmul_candidates(caps, 200, Precision::kF16)) {
        if (choice.strategy != kUnits) continue;
        const MatmulProblem problem = make_product({.m = 200, .n = 131, .k = 9}).problem;
        const Dispatch d = launch_matmul({}, problem, caps, Precision::kF16, choice);
        tried.insert(choice.rows);
        const uint32_t local_size = d.constants_as<MatmulUnitsConstants>().local_size;
        CHECK(local_size == units_group(choice, caps).count() * subgroup);
        const uint32_t sums = subgroup == 8 || subgroup == 16 ? 32 : 64;  // of a lane, at most
        CHECK(local_size * sums >= uint32_t{choice.rows} * choice.rows);
        CHECK(d.groups[0] * choice.rows >= 131);
        CHECK(d.groups[1] * choice.rows >= 200);
      }
      CHECK(tried == std::set<int>{32, 64, 128});
    }
    for (const MatmulChoice& choice : matmul_candidates(caps_with_units({{16, 16, 16}}), 200)) {
      CHECK(choice.strategy != kUnits);
    }
  }
}

}  // namespace vkformer::testing
