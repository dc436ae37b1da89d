// Products with a table: the weight slab by slab, or the rows part by part. Forced on every device
// that can.
#include "ops/matmul_run.h"
#include "params/activation.h"

namespace vkformer::testing {
namespace {

using Addend = ProductCase::Addend;
using enum MatmulStrategy;

constexpr MatmulChoice kInSlabs{kAnyRows, kSlabs, 4};
constexpr MatmulChoice kHolding{kAnyRows, kStationary};
constexpr KernelId kSlabKernel = KernelId::matmul_slabs__f32_f32_f32_tables;
constexpr KernelId kLongKernel = KernelId::matmul_stationary__f32_any_f32_tables;
constexpr KernelId kShortKernel = KernelId::matmul_stationary__f32_any_f32_tables_short;

// The test device as one whose compiler wants literals, if it has arrays of buffers.
std::optional<ProductRun> table_run(const MatmulChoice& choice) {
  if (!have_test_device()) return std::nullopt;
  DeviceCaps caps = vulkan_of(*test_device())->caps();
  caps.compiler.wants_literals = true;
  if (can_run(choice, caps)) return ProductRun{choice_text(choice), caps, Precision::kF32, choice};
  MESSAGE("skipped: this device or tier has no arrays of buffers");
  return std::nullopt;
}

Dispatch launched(const ProductRun& run, const MatmulProblem& problem) {
  const MatmulChoice choice = pick_matmul(problem, run.caps, run.precision, &run.choice);
  return launch_matmul({}, problem, run.caps, run.precision, choice, run.parts);
}

void check_table(const ProductRun& run, const ProductCase& c, const Product& product) {
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  REQUIRE(launched(run, product.problem).table_part_bytes > 0);
  check_product(c, product, run_product(vulkan_of(*test_device()), product, run),
                tolerance_for(DType::kF32, c.k));
}

// The fused parts take turns, so that every one meets several sizes.
ProductCase case_of(uint32_t m, uint32_t n, uint32_t k, size_t i) {
  constexpr Addend kAddends[] = {Addend::kNone, Addend::kAfter, Addend::kMatrix, Addend::kRow};
  ProductCase c{.m = m, .n = n, .k = k, .bias = i % 2 == 1};
  c.batch = i % 5 == 4 ? 3 : 1;
  c.y_gap = static_cast<uint32_t>(i % 4);
  c.addend = kAddends[i % 4];
  c.alpha = i % 3 == 1 ? -0.5f : 1.0f;
  c.beta = i % 3 == 2 ? 0.75f : 1.0f;
  c.activation = i % 7 == 3 ? ActivationKind::kGelu : ActivationKind::kNone;
  c.seed = static_cast<uint32_t>(i + 1);
  return c;
}

DeviceCaps swiftshader() {
  DeviceCaps caps;
  caps.tier = Tier::kSubgroup;
  caps.device_class = DeviceClass::kSoftware;
  caps.subgroup_size = 4;
  caps.compiler.wants_literals = caps.compiler.has_quads = true;
  caps.compiler.max_table_parts = 499984;
  return caps;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("matmul in slabs agrees with the reference at every edge of a tile") {
    const auto run = table_run(kInSlabs);
    if (!run) return;
    size_t i = 0;
    for (uint32_t m : {1u, 3u, 4u, 5u, 13u}) {
      for (uint32_t n : {1u, 63u, 64u, 65u, 131u}) {
        for (uint32_t k : {8u, 16u, 104u}) {
          ProductCase c = case_of(m, n, k, i);
          c.a_offset = 4 * static_cast<uint32_t>(i % 3);
          c.a_gap = 4 * static_cast<uint32_t>(i % 2);
          check_table(*run, c, make_product(c));
          ++i;
        }
      }
    }
    // More rounds than the inner loop has at a time, and a real model's layer.
    for (const ProductCase& c : {ProductCase{.m = 6, .n = 70, .k = 8 * 131},
                                 ProductCase{.m = 9, .n = 768, .k = 768, .bias = true}}) {
      check_table(*run, c, make_product(c));
    }
  }

  TEST_CASE("matmul with weights held agrees with the reference at every edge, in every format") {
    auto run = table_run(kHolding);
    if (!run) return;
    size_t i = 0;
    const bool meant =
        vulkan_of(*test_device())->caps().compiler.wants_literals;  // others compile for seconds
    for (uint32_t m : {1u, 5u, 300u}) {  // of several blocks of rows, the last
      for (uint32_t n : {1u, 7u, 8u, 31u, 33u, 64u, 131u}) {
        for (uint32_t k : {64u, 128u, 192u, 384u}) {
          ProductCase c = case_of(m, n, k, i);
          c.weight = kMatrixFormats[i % std::size(kMatrixFormats)];
          c.a_offset = k % 128 * static_cast<uint32_t>(i % 3);
          c.a_gap = 128 * static_cast<uint32_t>(i % 2);
          run->parts = i % 6 == 5 ? 1 : 0;
          if (meant || i % 5 == 0) check_table(*run, c, make_product(c));
          ++i;
        }
      }
    }
    run->parts = 0;
    const ProductCase real{.m = 145, .n = 768, .k = 768, .bias = true};
    check_table(*run, real, make_product(real));
  }

  TEST_CASE("a row of a product with a table has the same bits whatever other rows there are") {
    for (const MatmulChoice& choice : {kInSlabs, kHolding}) {
      const auto run = table_run(choice);
      if (!run) return;
      Product product = make_product({.m = 261, .n = 77, .k = 192, .bias = true});
      std::vector<uint32_t> first;
      for (uint32_t m : {1u, 2u, 4u, 5u, 21u, 261u}) {
        product.problem.params.m = m;
        const std::vector<uint32_t> y = run_product(vulkan_of(*test_device()), product, *run, 10);
        const std::vector<uint32_t> row = product_row(product, y, 0);
        if (first.empty()) first = row;
        CHECK(row == first);
      }
    }
  }

  TEST_CASE("products with a table pass NaN and infinity on, from a row and from a column") {
    for (const MatmulChoice& choice : {kInSlabs, kHolding}) {
      const auto run = table_run(choice);
      if (!run) return;
      constexpr uint32_t kDepth = 128;
      const ProductCase c{.m = 7, .n = 70, .k = kDepth, .activation = ActivationKind::kRelu};
      Product product = make_product(c);
      product.a.data[1 * kDepth + kDepth - 1] = kNan;
      product.a.data[6 * kDepth] = kInfinity;
      product.a_words = place(product.a, 0, 0, false).words;
      const size_t last_column = size_t{kDepth} * kPanelColumns;  // of panel 1, step 0
      product.b_words[last_column + 5] = bits_of_float(kNan);
      product.b.data[69] = kNan;
      check_table(*run, c, product);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("kernels with a table have it in set 1, and bind what it is made of") {
    CHECK(kernel_interface(kSlabKernel)->has_table);
    // Nothing reads what the table is made of except by the table, but it is bound.
    const auto rows = kernel_interface(kLongKernel);
    REQUIRE(rows->bindings.size() == 4);
    CHECK(rows->bindings[0].readonly);
  }

  TEST_CASE("matmul in slabs says what its table is, and takes whole slabs only") {
    const DeviceCaps caps = swiftshader();
    const auto picked = [&](const MatmulProblem& problem, const DeviceCaps& of) {
      return launched({"", of, Precision::kF32, pick_matmul(problem, of)}, problem);
    };
    const MatmulProblem whole =
        make_product({.m = 9, .n = 100, .k = 16, .batch = 2, .bias = true}).problem;
    const Dispatch d = picked(whole, caps);
    CHECK(d.kernel == kSlabKernel);
    CHECK(d.table_binding == 1);
    CHECK(d.table_part_bytes == 2048);
    CHECK(d.spec == constants(MatmulSlabsConstants{.activation = kActivationNone,
                                                   .terms = kTermBias | kTermFinish})
                        .values);
    CHECK(d.groups == std::array<uint32_t, 3>{3, 2, 2});
    CHECK(result_access(d) == Access::kWrite);
    const auto other = [&](auto change) {
      MatmulProblem problem = whole;
      DeviceCaps of = caps;
      change(problem, of);
      const Dispatch instead = picked(problem, of);
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
    other([](Problem&, DeviceCaps& of) { of.compiler.max_table_parts = 7; });
    DeviceCaps just = caps;
    just.compiler.max_table_parts = 8;
    CHECK(picked(whole, just).kernel == kSlabKernel);
    other([](Problem&, DeviceCaps& of) { of.limits.max_group_count[0] = 2; });
    other([](Problem&, DeviceCaps& of) { of.tier = Tier::kBaseline; });
  }

  TEST_CASE("matmul holds weights where rows are many and whole parts, else falls back") {
    const DeviceCaps caps = swiftshader();
    const auto picked = [&](const ProductCase& c, auto change) {
      MatmulProblem problem = make_product(c).problem;
      DeviceCaps of = caps;
      change(problem, of);
      const MatmulChoice choice = pick_matmul(problem, of);
      return launch_matmul({}, problem, of, Precision::kF32, choice,
                           parts_of_k(problem, of, choice));
    };
    using Problem = MatmulProblem;
    using Fields = MatmulStationaryConstants;
    const auto as_is = [](Problem&, DeviceCaps&) {};
    const ProductCase whole{.m = 300, .n = 1000, .k = 256, .bias = true};
    const Dispatch d = picked(whole, as_is);
    CHECK(d.kernel == kLongKernel);
    CHECK(d.table_binding == 0);
    CHECK(d.table_part_bytes == 512);
    CHECK(d.groups == std::array<uint32_t, 3>{2, 32, 1});
    const Fields fields{.activation = 0, .terms = kTermBias | kTermFinish, .rows = 160};
    CHECK(d.spec == constants(fields).values);
    CHECK(result_access(d) == Access::kReadWrite);
    const ProductCase plain{.m = 300, .n = 1000, .k = 256};
    CHECK(picked(plain, as_is).constants_as<Fields>().terms == 0);
    CHECK(picked({.m = 300, .n = 1000, .k = 192}, as_is).kernel == kShortKernel);
    CHECK(picked({.m = 31, .n = 1000, .k = 256}, as_is).kernel == kSlabKernel);
    CHECK(picked({.m = 300, .n = 1000, .k = 72}, as_is).kernel == kSlabKernel);
    CHECK(picked({.m = 300, .n = 10, .k = 256}, as_is).groups[0] == 2);  // a block for every core
    const auto f16 = [](uint32_t m) {
      return ProductCase{.m = m, .n = 9, .k = 64, .weight = MatrixFormat::kF16};
    };
    CHECK(picked(f16(6), as_is).kernel == kShortKernel);
    CHECK(picked(f16(5), as_is).kernel == KernelId::matmul_literal__f32_f16_f32_subgroup);
    const auto no_table = [&](auto change) {
      const Dispatch instead = picked(whole, change);
      CHECK(instead.table_binding * instead.table_part_bytes == 2048);
    };
    no_table([](Problem& p, DeviceCaps&) { p.params.a_offset = 4; });
    no_table([](Problem& p, DeviceCaps&) { p.params.a_row_stride = 264; });
    no_table([](Problem& p, DeviceCaps&) { p.rows_are_slots = true; });
    no_table([](Problem&, DeviceCaps& of) { of.compiler.max_table_parts = 599; });
    no_table([](Problem&, DeviceCaps& of) { of.limits.max_group_count[1] = 31; });
    // The sums of a gate lie apart, since Y has half as many columns.
    const auto gated = [](Problem& p, DeviceCaps&) { p.params.activation |= kActivationGate; };
    const Dispatch sums = picked(whole, gated);
    CHECK(sums.kernel == kLongKernel);
    const auto fields_apart = sums.constants_as<Fields>();
    CHECK(fields_apart.activation == kActivationNone);
    CHECK(fields_apart.terms == 0);
    CHECK(sums.push_as<MatmulParams>().y_row_stride == 1000);
    no_table([&](Problem& p, DeviceCaps& of) {
      gated(p, of);
      of.limits.max_group_count[1] = 299;
    });
    no_table([&](Problem& p, DeviceCaps& of) {
      gated(p, of);
      of.limits.max_storage_range = 4 * 300 * 1000 - 1;
    });
  }
}

}  // namespace vkformer::testing
