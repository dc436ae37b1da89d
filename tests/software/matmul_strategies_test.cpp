// The matrix product's strategies for software devices, forced, against the double-precision
// reference; those with a table: matmul_tables_test.cpp.
#include "ops/matmul_sweep.h"

namespace vkformer::testing {
namespace {

using Layout = ProductCase::Layout;
using enum MatmulStrategy;

// The kernels that one driver's compiler asks for, on every device that can run them.
void add_special_runs(std::vector<ProductRun>& runs, DeviceCaps caps) {
  caps.compiler.wants_literals = caps.compiler.streams_uniform_loads = true;
  add_run(runs, caps, Precision::kF32, choice_of(kLiteral, 1), "beside");
  for (const MatmulChoice& choice :
       {choice_of(kLiteral, 8), choice_of(kStream), choice_of(kSlabs, 4), choice_of(kStationary)}) {
    if (can_run(choice, caps)) add_run(runs, caps, Precision::kF32, choice);
  }
}

std::vector<ProductRun> packed_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  const Precision precision = caps.fp16() ? Precision::kF16 : Precision::kF32;
  const bool software = caps.device_class == DeviceClass::kSoftware;
  const MatmulChoice wide = caps.subgroup() ? choice_of(kWide, 16, 1) : choice_of(kWide, 14, 2);
  if (software) add_run(runs, caps, precision, wide);
  if (precision == Precision::kF16) return runs;
  add_special_runs(runs, caps);
  if (!software) return runs;
  add_run(runs, caps, precision, choice_of(kWide, 8, 1), "small");
  if (!caps.int64()) return runs;
  DeviceCaps narrow = caps;
  narrow.compiler.has_int64 = false;
  add_run(runs, narrow, precision, choice_of(kWide, 32, 1), "narrow");
  return runs;
}

std::vector<ProductRun> strided_runs(const DeviceCaps& caps) {
  std::vector<ProductRun> runs;
  // No strided variant multiplies halves.
  if (caps.fp16() || caps.device_class != DeviceClass::kSoftware) return runs;
  DeviceCaps plain = caps;
  plain.compiler.wants_literals = false;
  add_run(runs, plain, Precision::kF32,
          caps.subgroup() ? choice_of(kStrided, 8, 1) : choice_of(kStrided, 14, 2));
  plain.compiler.wants_literals = true;
  if (can_run(choice_of(kLiteral, 8), plain)) {
    add_run(runs, plain, Precision::kF32, choice_of(kStrided, 8, 1), "literal");
  }
  return runs;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("software strategies of matmul agree with the reference, packed") {
    sweep_packed(packed_runs);
  }
  TEST_CASE("software strategies of matmul agree with the reference, of any strides") {
    sweep_strided(strided_runs);
  }
  TEST_CASE("software strategies of matmul apply every activation") {
    sweep_activations(packed_runs);
  }
  TEST_CASE("software strategies of matmul give a row the same bits whatever rows there are") {
    sweep_row_bits(packed_runs);
  }
  TEST_CASE("software strategies of matmul pass NaN and infinity on") {
    sweep_specials(packed_runs);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("software devices pick their strategy of matmul by capacity and layout alone") {
    DeviceCaps software = caps_of_tier(Tier::kSubgroup);
    software.device_class = DeviceClass::kSoftware;
    software.subgroup_size = 8;
    DeviceCaps streams = software;
    streams.compiler.streams_uniform_loads = streams.compiler.has_int64 = true;
    DeviceCaps literal = software;
    literal.compiler.wants_literals = literal.compiler.has_quads = true;
    literal.subgroup_size = 4;
    for (uint32_t m : {1u, 3u, 4u, 8u, 9u, 100u}) {
      ProductCase c{.m = m, .n = 12, .k = 20};
      MatmulProblem problem = make_product(c).problem;
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
      CHECK(pick_matmul(problem, software).strategy == kStrided);
    }
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

  TEST_CASE("a tuned choice takes the place of a software device's table") {
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
}

}  // namespace vkformer::testing
