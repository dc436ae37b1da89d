// Every strategy and variant of the matrix product, forced, against the double-precision reference.
#include <set>

#include "ops/matmul_run.h"

namespace vkformer::testing {
namespace {

using Addend = ProductCase::Addend;
using Layout = ProductCase::Layout;
using enum MatmulStrategy;

// 1, primes, around every tile in use, one real model's, as M, N, K.
constexpr uint32_t kSizes[][3] = {
    {1, 1, 1},   {1, 7, 5},     {2, 8, 1},    {3, 1, 7},    {4, 31, 16},   {5, 17, 33},
    {7, 15, 31}, {8, 129, 4},   {9, 33, 64},  {13, 65, 13}, {14, 127, 9},  {15, 16, 3},
    {16, 64, 8}, {17, 128, 17}, {31, 63, 15}, {33, 32, 65}, {65, 66, 130}, {145, 24, 768},
};

// The fused parts take turns, so that every one meets several sizes.
ProductCase case_of(size_t i, MatrixFormat weight, Layout layout) {
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
  if (!list.empty() && vulkan_of(*test_device())->caps().fp16()) {
    list.push_back(vulkan_of(*test_device()));
  }
  return list;
}

void add_run(std::vector<ProductRun>& runs, const DeviceCaps& caps, Precision precision,
             const MatmulChoice& choice, const std::string& what = "") {
  const bool beside = !what.empty() || precision == Precision::kF16;
  runs.push_back({std::string(choice_name(caps.tier)) + " " + choice_text(choice) + " " + what,
                  caps, precision, choice, beside});
}

MatmulChoice choice_of(MatmulStrategy strategy, uint8_t rows = 0, uint8_t lanes = 0,
                       uint8_t slices = 0) {
  return {kAnyRows, strategy, rows, lanes, slices};
}

MatmulChoice software_rows(const DeviceCaps& caps) {
  return choice_of(kRows, 0, caps.subgroup_size == 4 ? 4 : 8, 1);
}

// Blocks of every size that a GPU may take, and products in parts of K.
void add_tiled_runs(std::vector<ProductRun>& runs, const DeviceCaps& caps) {
  add_run(runs, caps, Precision::kF32, choice_of(kTiled, 32));
  add_run(runs, caps, Precision::kF32, choice_of(kTiled, 64), "large");
  if (can_run(choice_of(kTiled, 128), caps)) {
    add_run(runs, caps, Precision::kF32, choice_of(kTiled, 128), "largest");
  }
  for (const auto& [block, parts] : {std::pair{32, 3}, {64, 2}}) {
    add_run(runs, caps, Precision::kF32, choice_of(kTiled, static_cast<uint8_t>(block)),
            "in parts");
    runs.back().parts = static_cast<uint32_t>(parts);
  }
}

// The kernels that one driver's compiler asks for, on every device that can run them.
void add_special_runs(std::vector<ProductRun>& runs, DeviceCaps caps) {
  caps.compiler.wants_literals = caps.compiler.streams_uniform_loads = true;
  add_run(runs, caps, Precision::kF32, choice_of(kLiteral, 1), "beside");
  for (const MatmulChoice& choice :
       {choice_of(kLiteral, 8), choice_of(kStream), choice_of(kSlabs, 4), choice_of(kStationary)}) {
    if (can_run(choice, caps)) add_run(runs, caps, Precision::kF32, choice);
  }
}

// The strategies for few and for many rows with packed weights, as a device of these capabilities
// and one with narrower loads run them.
void add_packed_runs(std::vector<ProductRun>& runs, DeviceCaps caps, Precision precision) {
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const MatmulChoice wide = caps.subgroup() ? choice_of(kWide, 16, 1) : choice_of(kWide, 14, 2);
  add_run(runs, caps, precision, software_rows(caps));
  if (software) add_run(runs, caps, precision, wide);
  if (precision == Precision::kF32) {
    add_special_runs(runs, caps);
    if (software) add_run(runs, caps, precision, choice_of(kWide, 8, 1), "small");
  }
  if (caps.int64() && precision == Precision::kF32) {
    caps.compiler.has_int64 = false;
    add_run(runs, caps, precision, software_rows(caps), "narrow");
    if (software && caps.subgroup()) {
      add_run(runs, caps, precision, choice_of(kWide, 32, 1), "narrow");
    }
  }
  if (!software) return;
  caps.device_class = DeviceClass::kDiscrete;
  add_run(runs, caps, precision, choice_of(kRows, 0, 16, 8), "discrete");
  add_run(runs, caps, precision, choice_of(kRows, 0, 16, 4), "discrete");
}

std::vector<ProductRun> packed_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) {
    add_packed_runs(runs, caps, Precision::kF16);
  } else {
    add_packed_runs(runs, caps, Precision::kF32);
    add_tiled_runs(runs, caps);
  }
  return runs;
}

std::vector<ProductRun> strided_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  if (caps.fp16()) return runs;  // no strided variant multiplies halves
  if (caps.device_class == DeviceClass::kSoftware) {
    DeviceCaps plain = caps;
    plain.compiler.wants_literals = false;
    add_run(runs, plain, Precision::kF32,
            caps.subgroup() ? choice_of(kStrided, 8, 1) : choice_of(kStrided, 14, 2));
    plain.compiler.wants_literals = true;
    if (can_run(choice_of(kLiteral, 8), plain)) {
      add_run(runs, plain, Precision::kF32, choice_of(kStrided, 8, 1), "literal");
    }
  }
  add_tiled_runs(runs, caps);
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
  const bool few = run.choice.strategy == kRows || run.choice.strategy == kStream;
  if (few && c.m > 17) return false;
  if (run.choice.slices == 8 && c.m > 4) return false;  // beyond what shared memory holds
  const bool all = !run.beside && c.weight == MatrixFormat::kF32;
  return all || i % 3 == (c.weight == MatrixFormat::kF32 ? 1 : 2);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul with packed weights agrees with the reference in every strategy") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          for (MatrixFormat weight : kMatrixFormats) {
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
          check_case(device, run, case_of(i, MatrixFormat::kF32, Layout::kStrided));
        }
      }
    }
  }

  TEST_CASE("matmul applies every activation, and finite ones stay finite far out") {
    for (const auto& device : devices()) {
      for (const ProductRun& run : packed_runs(device->caps())) {
        if (run.beside || run.choice.strategy == kWide) continue;
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
        ProductCase c{.m = 40, .n = 21, .k = 77, .bias = true};
        Product product = make_product(c);
        std::vector<uint32_t> first;
        for (uint32_t m : {1u, 4u, 5u, 8u, 9u, 17u, 40u}) {
          if (run.choice.slices == 8 && m > 4) continue;
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
        if (run.choice.slices == 8) continue;  // for 4 rows at most
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
    software.subgroup_size = 8;
    DeviceCaps streams = software;
    streams.compiler.streams_uniform_loads = streams.compiler.has_int64 = true;
    DeviceCaps literal = software;
    literal.compiler.wants_literals = literal.compiler.has_quads = true;
    literal.subgroup_size = 4;
    const DeviceCaps discrete = caps_of_tier(Tier::kSubgroup);
    for (uint32_t m : {1u, 3u, 4u, 8u, 9u, 100u}) {
      ProductCase c{.m = m, .n = 12, .k = 20};
      MatmulProblem problem = make_product(c).problem;
      CHECK(pick_matmul(problem, discrete).strategy == (m <= 8 ? kRows : kTiled));
      CHECK(pick_matmul(problem, software).strategy == (m <= 3 ? kRows : kWide));
      CHECK(pick_matmul(problem, streams).strategy == (m <= 16 ? kStream : kWide));
      CHECK(pick_matmul(problem, literal).strategy == kLiteral);
      CHECK(pick_matmul(problem, literal).rows == (m == 1 ? 1 : 8));
      DeviceCaps tables = literal;
      tables.compiler.max_table_parts = 1000;
      CHECK(pick_matmul(problem, tables).strategy == kLiteral);  // K is no whole slabs
      // Rows that do not lie in whole panels cannot be streamed.
      problem.params.b_row_stride = 72;
      CHECK(pick_matmul(problem, streams).strategy == kWide);
      problem.params.a_col_stride = 2;
      CHECK(pick_matmul(problem, discrete).strategy == kTiled);
      CHECK(pick_matmul(problem, software).strategy == kStrided);
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

  TEST_CASE("tiles of matmul_wide fit 16 KiB of shared memory with subgroups of any size") {
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.device_class = DeviceClass::kSoftware;
    for (uint32_t size : {4u, 8u, 16u, 32u, 64u, 128u}) {
      caps.subgroup_size = size;
      for (const Layout layout : {Layout::kPacked, Layout::kStrided}) {
        const ProductCase c{.m = 100, .n = 100, .k = 20, .layout = layout};
        const MatmulProblem problem = make_product(c).problem;
        const Dispatch d =
            launch_matmul({}, problem, caps, Precision::kF32, pick_matmul(problem, caps));
        CAPTURE(size);
        const auto tile = d.constants_as<MatmulWideConstants>();
        CHECK(tile.rows > 0);
        CHECK(tile.lanes * tile.rows * tile.groups * 2 * 16 <= 16384);
        CHECK(d.groups[0] * tile.rows >= c.m);
      }
    }
  }

  TEST_CASE("a tuned choice takes the table's place where the device can run it") {
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.device_class = DeviceClass::kSoftware;
    caps.subgroup_size = 8;
    ProductCase c{.m = 4, .n = 12, .k = 20};
    const MatmulProblem problem = make_product(c).problem;
    CHECK(pick_matmul(problem, caps).strategy == kWide);
    caps.tuned_matmul[0] = {{2, kWide, 8, 1}, {8, kRows, 0, 4, 2}};
    CHECK(pick_matmul(problem, caps) == MatmulChoice{8, kRows, 0, 4, 2});
    MatmulProblem half = problem;
    half.format = MatrixFormat::kF16;
    CHECK(pick_matmul(half, caps).strategy == kWide);
    // No shaderInt64, and tiles that no kernel has: the table's own.
    caps.tuned_matmul[0] = {{8, kStream}};
    CHECK(pick_matmul(problem, caps).strategy == kWide);
    caps.tuned_matmul[0] = {{8, kWide, 64, 64}, {8, kRows, 0, 64, 64}, {8, kLiteral, 8}};
    CHECK(pick_matmul(problem, caps) == MatmulChoice{16, kWide, 8, 1});
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
        CHECK_FALSE(table.back().only_halves);
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
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          const ProductCase c = case_of(i, MatrixFormat::kF32, Layout::kPacked);
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
