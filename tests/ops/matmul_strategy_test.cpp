// Every strategy and variant of the matrix product, forced, against the double-precision reference.
// Those for software devices alone: software/matmul_strategies_test.cpp.
#include "ops/matmul_sweep.h"

namespace vkformer::testing {
namespace {

using Layout = ProductCase::Layout;
using enum MatmulStrategy;

MatmulChoice narrow_rows(const DeviceCaps& caps) {
  return choice_of(kRows, 0, caps.subgroup_size == 4 ? 4 : 8, 1);
}

// Blocks of every size that a GPU may take, and products in parts of K.
void add_tiled_runs(std::vector<ProductRun>& runs, const DeviceCaps& caps) {
  add_run(runs, caps, Precision::kF32, choice_of(kTiled, 32));
  add_run(runs, caps, Precision::kF32, choice_of(kTiled, 16), "small");
  add_run(runs, caps, Precision::kF32, choice_of(kTiled, 64), "large");
  if (can_run(choice_of(kTiled, 128), caps)) {
    add_run(runs, caps, Precision::kF32, choice_of(kTiled, 128), "largest");
  }
  for (const auto& [block, parts] : {std::pair{16, 2}, {32, 3}, {64, 2}}) {
    add_run(runs, caps, Precision::kF32, choice_of(kTiled, static_cast<uint8_t>(block)),
            "in parts");
    runs.back().parts = static_cast<uint32_t>(parts);
  }
}

// The strategy for few rows with packed weights, as a device of these capabilities, one with
// narrower loads and a GPU run it.
void add_few_runs(std::vector<ProductRun>& runs, DeviceCaps caps, Precision precision) {
  add_run(runs, caps, precision, narrow_rows(caps));
  if (caps.int64() && precision == Precision::kF32) {
    caps.compiler.has_int64 = false;
    add_run(runs, caps, precision, narrow_rows(caps), "narrow");
  }
  if (caps.device_class != DeviceClass::kSoftware) return;
  caps.device_class = DeviceClass::kDiscrete;
  add_run(runs, caps, precision, choice_of(kRows, 0, 16, 8), "discrete");
  add_run(runs, caps, precision, choice_of(kRows, 0, 16, 4), "discrete");
  caps.gpu.matmul_ahead = 2;
  add_run(runs, caps, precision, choice_of(kRows, 0, 4, 32), "two runs ahead");
}

// Blocks that sum short runs in halves, as GPUs with packed halves run them.
void add_half_runs(std::vector<ProductRun>& runs, DeviceCaps caps) {
  caps.gpu.half_blocks = true;
  for (const uint8_t block : {32, 64, 128}) {
    if (!can_run(choice_of(kTiled, block), caps)) continue;
    add_run(runs, caps, Precision::kF16, choice_of(kTiled, block), "in halves");
  }
  add_run(runs, caps, Precision::kF16, choice_of(kTiled, 32), "in halves and parts");
  runs.back().parts = 3;
}

std::vector<ProductRun> half_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) add_half_runs(runs, caps);
  return runs;
}

std::vector<ProductRun> packed_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  add_few_runs(runs, caps, caps.fp16() ? Precision::kF16 : Precision::kF32);
  if (caps.fp16()) add_half_runs(runs, caps);
  if (!caps.fp16()) add_tiled_runs(runs, caps);
  return runs;
}

std::vector<ProductRun> strided_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) add_half_runs(runs, caps);
  if (!caps.fp16()) add_tiled_runs(runs, caps);
  return runs;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul with packed weights agrees with the reference in every strategy") {
    sweep_packed(packed_runs);
  }
  TEST_CASE("matmul of any strides agrees with the reference in every strategy") {
    sweep_strided(strided_runs);
  }
  TEST_CASE("matmul applies every activation, and finite ones stay finite far out") {
    sweep_activations(packed_runs);
  }
  TEST_CASE("a row of matmul has the same bits whatever other rows there are") {
    sweep_row_bits(packed_runs);
  }
  TEST_CASE("matmul passes NaN and infinity on in every strategy") {
    sweep_specials(packed_runs);
  }

  TEST_CASE("blocks in halves multiply large factors in f32, and leave other rows their bits") {
    for (const auto& device : product_devices()) {
      for (const ProductRun& run : half_runs(device->caps())) {
        CAPTURE(run.name);
        for (const MatrixFormat format : {MatrixFormat::kF32, MatrixFormat::kF16}) {
          ProductCase c{.m = 37, .n = 70, .k = 75, .weight = format, .bias = true};
          Product product = make_product(c);
          const std::vector<uint32_t> plain = run_product(device, product, run, 1);
          // Beyond what sums of halves may have, beyond halves, and far beyond.
          product.a.data[3 * 75 + 0] = 700;
          product.a.data[3 * 75 + 1] = -3000;
          product.a.data[17 * 75 + 74] = 65520;
          product.a.data[36 * 75 + 40] = -3e30;
          product.a_words = place(product.a, c.a_offset, c.a_gap, false).words;
          const std::vector<uint32_t> wide = run_product(device, product, run, 1);
          for (const uint32_t row : {0u, 2u, 4u, 16u, 35u}) {
            CHECK(product_row(product, wide, row) == product_row(product, plain, row));
          }
          Tolerance tolerance = tolerance_for(DType::kF16, c.k);
          tolerance.absolute *= 1e25;  // of the row with -3e30
          check_product(c, product, wide, tolerance);
          product.a.data[36 * 75 + 40] = 9;
          product.a.data[5 * 75 + 1] = kNan;
          product.a.data[6 * 75 + 70] = -kInfinity;
          product.a_words = place(product.a, c.a_offset, c.a_gap, false).words;
          check_product(c, product, run_product(device, product, run),
                        tolerance_for(DType::kF16, c.k));
        }
      }
    }
  }

  TEST_CASE("blocks in halves multiply large weights in f32") {
    for (const auto& device : product_devices()) {
      for (const ProductRun& run : half_runs(device->caps())) {
        CAPTURE(run.name);
        ProductCase c{.m = 35, .n = 33, .k = 41, .layout = Layout::kStrided};
        Product product = make_product(c);
        for (size_t i = 0; i < product.b.data.size(); i += 7) product.b.data[i] *= 1000;
        product.b_words = place(product.b, 5, c.b_gap, false).words;
        Tolerance tolerance = tolerance_for(DType::kF16, c.k);
        tolerance.absolute *= 10;
        check_product(c, product, run_product(device, product, run), tolerance);
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("matmul picks its strategy by capacity and layout alone") {
    const DeviceCaps discrete = caps_of_tier(Tier::kSubgroup);
    for (uint32_t m : {1u, 3u, 4u, 8u, 9u, 100u}) {
      MatmulProblem problem = make_product({.m = m, .n = 12, .k = 20}).problem;
      CHECK(pick_matmul(problem, discrete).strategy == (m <= 8 ? kRows : kTiled));
      problem.params.a_col_stride = 2;
      CHECK(pick_matmul(problem, discrete).strategy == kTiled);
    }
  }

  TEST_CASE("a GPU that says how many units it has gets work for all of them") {
    DeviceCaps caps = caps_of_tier(Tier::kFp16);
    caps.device_class = DeviceClass::kDiscrete;
    caps.limits.max_invocations = caps.limits.max_group_size[0] = 256;
    MatmulProblem many = make_product({.m = 256, .n = 768, .k = 20}).problem;
    CHECK(pick_matmul(many, caps).rows == 64);  // 48 blocks
    caps.compute_units = 132;
    CHECK(pick_matmul(many, caps).rows == 32);
    caps.compute_units = 20;
    CHECK(pick_matmul(many, caps).rows == 64);
  }

  TEST_CASE("few rows are multiplied in f32, whatever the precision allows") {
    const DeviceCaps caps = caps_of_tier(Tier::kFp16);
    for (const uint32_t m : {1u, kMostFewRows, kMostFewRows + 1}) {
      const MatmulProblem problem = make_product({.m = m, .n = 12, .k = 20}).problem;
      CHECK(multiplies_halves(problem, caps, Precision::kF16) == (m > kMostFewRows));
      CHECK_FALSE(multiplies_halves(problem, caps, Precision::kF32));
    }
  }

  TEST_CASE("matmul takes smaller blocks, then parts of K, where a GPU would lack work") {
    struct Row {
      uint32_t m, n, k;
      uint32_t block, parts;
    };
    constexpr Row kRows[] = {
        {512, 3072, 768, 128, 0}, {512, 768, 768, 128, 0}, {256, 768, 3072, 64, 0},
        {128, 768, 3072, 64, 0},  {64, 768, 768, 32, 0},   {16, 768, 768, 32, 0},
        {16, 384, 1536, 32, 2},   {16, 384, 384, 32, 0},   {16, 32, 8192, 32, 8},
        {1500, 24, 8192, 32, 0},
    };
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.device_class = DeviceClass::kDiscrete;
    caps.limits.max_invocations = caps.limits.max_group_size[0] = 256;
    for (const Row& row : kRows) {
      CAPTURE(row.m);
      CAPTURE(row.n);
      CAPTURE(row.k);
      const ProductCase c{.m = row.m, .n = row.n, .k = row.k};
      MatmulProblem problem{.params = {.m = c.m, .n = c.n, .k = c.k}};
      problem.params.a_col_stride = problem.params.b_col_stride = 1;
      problem.params.b_row_stride = kPanelColumns;
      problem.params.b_panel_stride = kPanelColumns * c.k;
      const MatmulChoice choice = pick_matmul(problem, caps);
      REQUIRE(choice.strategy == kTiled);
      CHECK(launch_matmul({}, problem, caps, Precision::kF32, choice)
                .constants_as<MatmulTiledConstants>()
                .block == row.block);
      CHECK(parts_of_k(problem, caps, choice) == row.parts);
      caps.device_class = DeviceClass::kIntegrated;
      CHECK(parts_of_k(problem, caps, pick_matmul(problem, caps)) <= row.parts);
      caps.device_class = DeviceClass::kDiscrete;
    }
    // The baseline's limits have no place for the largest one.
    CHECK(pick_matmul({.params = {.m = 512, .n = 3072, .k = 768}}, caps_of_tier(Tier::kBaseline))
              .rows == 64);
  }

  TEST_CASE("a tuned choice takes the table's place where the device can run it") {
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    const MatmulProblem problem = make_product({.m = 4, .n = 12, .k = 20}).problem;
    const MatmulChoice usual = pick_matmul(problem, caps);
    CHECK(usual.strategy == kRows);
    caps.tuned_matmul[0] = {{2, kTiled, 64}, {8, kRows, 0, 4, 2}};
    CHECK(pick_matmul(problem, caps) == MatmulChoice{8, kRows, 0, 4, 2});
    MatmulProblem half = problem;
    half.format = MatrixFormat::kF16;
    CHECK(pick_matmul(half, caps) == usual);
    // Strategies of other devices, and tiles that no kernel has: the table's own.
    caps.tuned_matmul[0] = {
        {8, kStream}, {8, kWide, 8, 1}, {8, kRows, 0, 64, 64}, {8, kLiteral, 8}};
    CHECK(pick_matmul(problem, caps) == usual);
  }

  TEST_CASE("the table of every device ends with a row that takes any product") {
    MatmulProblem odd = make_product({.m = 40, .n = 33, .k = 21}).problem;
    odd.params.a_col_stride = odd.params.b_col_stride = 3;
    odd.params.a_offset = odd.params.b_offset = 1;
    for (const Tier tier : {Tier::kBaseline, Tier::kSubgroup, Tier::kFp16}) {
      for (const DeviceClass kind : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
        DeviceCaps caps = caps_of_tier(tier);
        caps.device_class = kind;
        const std::vector<MatmulTableRow> table = matmul_table(caps);
        CHECK(table.back().choice.max_rows == kAnyRows);
        size_t takers = 0;
        for (const MatmulTableRow& row : table) {
          const MatmulCall call{odd, caps, caps.fp16()};
          takers += strategy_row(row.choice.strategy).takes(call, row.choice) ? 1 : 0;
        }
        CHECK(takers >= 1);
        CHECK(strategy_row(pick_matmul(odd, caps).strategy).takes({odd, caps}, {}));
        // A choice that does not take the product gives way to the table's.
        const MatmulChoice rows{kAnyRows, kRows, 0, 8, 1};
        CHECK(pick_matmul(odd, caps, Precision::kF32, &rows) == pick_matmul(odd, caps));
      }
    }
  }

  TEST_CASE("every candidate of the tuner can run, and the first is the table's") {
    for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
      for (DeviceClass kind : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
        for (uint32_t m : {1u, 4u, 16u, 160u}) {
          DeviceCaps caps = caps_of_tier(tier);
          caps.device_class = kind;
          caps.subgroup_size = 8;
          const std::vector<MatmulChoice> list = matmul_candidates(caps, m);
          CHECK(list.size() >= 2);
          CHECK(list[0] == matmul_choice(caps, m, MatrixFormat::kF32));
          for (const MatmulChoice& choice : list) CHECK(can_run(choice, caps));
        }
      }
    }
  }

  TEST_CASE("matmul's launches keep the baseline's limits on invocations and cover every element") {
    for (Tier tier : {Tier::kBaseline, Tier::kSubgroup}) {
      for (DeviceClass kind : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
        DeviceCaps caps = caps_of_tier(tier);
        caps.device_class = kind;
        for (size_t i = 0; i < std::size(kProductSizes); ++i) {
          const ProductCase c = product_case(i, MatrixFormat::kF32, Layout::kPacked);
          const MatmulProblem problem = make_product(c).problem;
          const Dispatch d =
              launch_matmul({}, problem, caps, Precision::kF32, pick_matmul(problem, caps));
          CHECK(d.constants_as<MatmulRowsConstants>().local_size <= caps.limits.max_invocations);
          CHECK(d.push.size() <= caps.limits.max_push_bytes);
          CHECK(d.groups[2] == c.batch);
          CHECK(d.flops == 2.0 * c.batch * c.m * c.n * c.k);
        }
      }
    }
  }
}

}  // namespace vkformer::testing
