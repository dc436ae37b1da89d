// Products whose weight is bound slab by slab: whole ones, forced on every device that can.
#include "ops/matmul_run.h"

namespace vkformer::testing {
namespace {

using Addend = ProductCase::Addend;

constexpr MatmulChoice kChoice{kAnyRows, MatmulStrategy::kSlabs, 4};
constexpr KernelId kKernel = KernelId::matmul_slabs__f32_f32_f32_tables;

// The test device as one whose compiler wants literals, if it has arrays of buffers.
std::optional<ProductRun> slab_run() {
  if (!have_test_device()) return std::nullopt;
  DeviceCaps caps = test_device()->impl()->caps();
  caps.wants_literals = true;
  if (can_run(kChoice, caps)) return ProductRun{"slabs", caps, Precision::kF32, kChoice};
  MESSAGE("skipped: this device or tier has no arrays of buffers");
  return std::nullopt;
}

void check_slabs(const ProductRun& run, const ProductCase& c, Product product) {
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  REQUIRE(launch_matmul({}, product.problem, run.caps, run.precision, run.choice).kernel ==
          kKernel);
  check_product(c, product, run_product(test_device()->impl(), product, run),
                tolerance_for(DType::kF32, c.k));
}

DeviceCaps swiftshader() {
  DeviceCaps caps;
  caps.tier = Tier::kSubgroup;
  caps.device_class = DeviceClass::kSoftware;
  caps.subgroup_size = 4;
  caps.wants_literals = caps.has_quads = true;
  caps.max_table_parts = 499984;
  return caps;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul in slabs agrees with the reference at every edge of a tile") {
    const auto run = slab_run();
    if (!run) return;
    constexpr Addend kAddends[] = {Addend::kNone, Addend::kAfter, Addend::kMatrix, Addend::kRow};
    size_t i = 0;
    for (uint32_t m : {1u, 3u, 4u, 5u, 13u}) {
      for (uint32_t n : {1u, 63u, 64u, 65u, 131u}) {
        for (uint32_t k : {8u, 16u, 104u}) {
          ProductCase c{.m = m, .n = n, .k = k, .bias = i % 2 == 1};
          c.batch = i % 5 == 4 ? 3 : 1;
          c.a_offset = 4 * static_cast<uint32_t>(i % 3);
          c.a_gap = 4 * static_cast<uint32_t>(i % 2);
          c.y_gap = static_cast<uint32_t>(i % 4);
          c.addend = kAddends[i % 4];
          c.alpha = i % 3 == 1 ? -0.5f : 1.0f;
          c.beta = i % 3 == 2 ? 0.75f : 1.0f;
          c.activation = i % 7 == 3 ? ActivationKind::kGelu : ActivationKind::kNone;
          c.seed = static_cast<uint32_t>(++i);
          check_slabs(*run, c, make_product(c));
        }
      }
    }
    // More rounds than the inner loop has at a time, and a real model's layer.
    for (const ProductCase& c : {ProductCase{.m = 6, .n = 70, .k = 8 * 131},
                                 ProductCase{.m = 9, .n = 768, .k = 768, .bias = true}}) {
      check_slabs(*run, c, make_product(c));
    }
  }

  TEST_CASE("a row in slabs has the same bits whatever other rows there are") {
    const auto run = slab_run();
    if (!run) return;
    Product product = make_product({.m = 21, .n = 77, .k = 40, .bias = true});
    std::vector<uint32_t> first;
    for (uint32_t m : {1u, 2u, 4u, 5u, 21u}) {
      product.problem.params.m = m;
      const std::vector<uint32_t> y = run_product(test_device()->impl(), product, *run, 25);
      const std::vector<uint32_t> row = product_row(product, y, 0);
      if (first.empty()) first = row;
      CHECK(row == first);
    }
  }

  TEST_CASE("slabs pass NaN and infinity on, from a row and from a column") {
    const auto run = slab_run();
    if (!run) return;
    const ProductCase c{.m = 7, .n = 70, .k = 24, .activation = ActivationKind::kRelu};
    Product product = make_product(c);
    product.a.data[1 * 24 + 23] = kNan;
    product.a.data[6 * 24] = kInfinity;
    product.a_words = place(product.a, 0, 0, false).words;
    const size_t last_column = size_t{24} * kPanelColumns;  // of panel 1, step 0
    product.b_words[last_column + 5] = bits_of_float(kNan);
    product.b.data[69] = kNan;
    check_slabs(*run, c, product);
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("matmul in slabs says what its table is, and takes whole slabs only") {
    const DeviceCaps caps = swiftshader();
    const auto launched = [&](const MatmulProblem& problem, const DeviceCaps& of) {
      return launch_matmul({}, problem, of, Precision::kF32, pick_matmul(problem, of));
    };
    const MatmulProblem whole =
        make_product({.m = 9, .n = 100, .k = 16, .batch = 2, .bias = true}).problem;
    const Dispatch d = launched(whole, caps);
    CHECK(d.kernel == kKernel);
    CHECK(d.table_binding == 1);
    CHECK(d.table_part_bytes == 2048);
    CHECK(d.spec == std::vector<uint32_t>{0, kTermBias});
    CHECK(d.groups == std::array<uint32_t, 3>{3, 2, 2});
    const auto other = [&](auto change) {
      MatmulProblem problem = whole;
      DeviceCaps of = caps;
      change(problem, of);
      const Dispatch instead = launched(problem, of);
      CHECK(instead.table_part_bytes == 0);
      return instead.kernel;
    };
    using Problem = MatmulProblem;
    CHECK(other([](Problem& p, DeviceCaps&) { p.params.k = 12; }) ==
          KernelId::matmul_literal__f32_f32_f32_subgroup);
    CHECK(other([](Problem& p, DeviceCaps&) { p.params.m = 1, p.params.k = 12; }) ==
          KernelId::matmul_single__f32_f32_f32);
    CHECK(other([](Problem& p, DeviceCaps&) { p.format = MatrixFormat::kF16; }) ==
          KernelId::matmul_literal__f32_f16_f32_subgroup);
    other([](Problem& p, DeviceCaps&) { p.params.a_offset = 1; });
    other([](Problem& p, DeviceCaps&) { p.params.a_row_stride = 18; });
    other([](Problem& p, DeviceCaps&) { p.params.b_offset = 64; });
    other([](Problem& p, DeviceCaps&) { p.params.b_panel_stride = 24 * 64; });
    other([](Problem& p, DeviceCaps&) { p.params.b_row_stride = 128; });
    // Four slabs a matrix, two matrices: the table holds them, or not.
    other([](Problem&, DeviceCaps& of) { of.max_table_parts = 7; });
    DeviceCaps just = caps;
    just.max_table_parts = 8;
    CHECK(launched(whole, just).kernel == kKernel);
    other([](Problem&, DeviceCaps& of) { of.limits.max_group_count[0] = 2; });
    other([](Problem&, DeviceCaps& of) { of.tier = Tier::kBaseline; });
  }
}

}  // namespace vkformer::testing
