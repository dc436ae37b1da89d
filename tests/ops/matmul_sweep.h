// Strategies of matrix products over many sizes. These are the same sweeps for those of every
// device (ops/matmul_strategy_test.cpp) and for those of software devices (tests/software).
#pragma once

#include "ops/matmul_run.h"

namespace vkformer::testing {

// What a device of these capabilities runs.
using RunsOf = std::vector<ProductRun> (*)(const DeviceCaps& caps);

// 1, primes, around every tile in use, one real model's, as M, N, K.
inline constexpr uint32_t kProductSizes[][3] = {
    {1, 1, 1},   {1, 7, 5},     {2, 8, 1},    {3, 1, 7},    {4, 31, 16},   {5, 17, 33},
    {7, 15, 31}, {8, 129, 4},   {9, 33, 64},  {13, 65, 13}, {14, 127, 9},  {15, 16, 3},
    {16, 64, 8}, {17, 128, 17}, {31, 63, 15}, {33, 32, 65}, {65, 66, 130}, {145, 24, 768},
};

// The fused parts take turns, so that every one meets several sizes.
inline ProductCase product_case(size_t i, MatrixFormat weight, ProductCase::Layout layout) {
  using Addend = ProductCase::Addend;
  constexpr Addend kAddends[] = {Addend::kNone, Addend::kAfter, Addend::kMatrix, Addend::kRow};
  ProductCase c{.m = kProductSizes[i][0],
                .n = kProductSizes[i][1],
                .k = kProductSizes[i][2],
                .weight = weight};
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
  if (layout == ProductCase::Layout::kPacked) {
    c.bias = i % 2 == 1;
    return c;
  }
  c.b_gap = static_cast<uint32_t>(i % 4);
  c.trans_a = i % 4 >= 2;
  c.trans_b = i % 2 == 1;
  return c;
}

// Devices to run on: every tier's, and the test device itself where it multiplies halves.
inline std::vector<std::shared_ptr<VulkanDevice>> product_devices() {
  std::vector<std::shared_ptr<VulkanDevice>> list;
  for (const TierDevice& device : tier_devices()) {
    if (!device.wide) list.push_back(device.device);
  }
  if (!list.empty() && vulkan_of(*test_device())->caps().fp16()) {
    list.push_back(vulkan_of(*test_device()));
  }
  return list;
}

inline void add_run(std::vector<ProductRun>& runs, const DeviceCaps& caps, Precision precision,
                    const MatmulChoice& choice, const std::string& what = "") {
  const bool beside = !what.empty() || precision == Precision::kF16;
  runs.push_back({std::string(choice_name(caps.tier)) + " " + choice_text(choice) + " " + what,
                  caps, precision, choice, beside});
}

inline MatmulChoice choice_of(MatmulStrategy strategy, uint8_t rows = 0, uint8_t lanes = 0,
                              uint8_t slices = 0) {
  return {kAnyRows, strategy, rows, lanes, slices};
}

inline void check_product_case(const std::shared_ptr<VulkanDevice>& device, const ProductRun& run,
                               const ProductCase& c) {
  CAPTURE(run.name);
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  const Product product = make_product(c);
  const DType arithmetic = run.precision == Precision::kF16 ? DType::kF16 : DType::kF32;
  check_product(c, product, run_product(device, product, run), tolerance_for(arithmetic, c.k));
}

// Nearly every pair of a run and a size is a pipeline to compile. So other variants than a tier's
// own take every third size, and so do weights in f16. More rows than a strategy is meant for show
// nothing new.
inline bool worth_running(const ProductRun& run, const ProductCase& c, size_t i) {
  const bool few = run.choice.strategy == MatmulStrategy::kRows ||
                   run.choice.strategy == MatmulStrategy::kStream;
  if (few && c.m > 17) return false;
  if (run.choice.slices == 8 && c.m > 4) return false;  // beyond what shared memory holds
  // Types of GGUF files, each a pipeline to compile, take turns.
  if (is_gguf_format(c.weight) && (i / 3 + static_cast<size_t>(c.weight)) % 2 != 0) return false;
  const bool all = !run.beside && c.weight == MatrixFormat::kF32;
  return all || i % 3 == (c.weight == MatrixFormat::kF32 ? 1 : 2);
}

// Packed weights of every format against the reference.
inline void sweep_packed(RunsOf runs_of) {
  for (const auto& device : product_devices()) {
    for (const ProductRun& run : runs_of(device->caps())) {
      for (size_t i = 0; i < std::size(kProductSizes); ++i) {
        for (MatrixFormat weight : kMatrixFormats) {
          const ProductCase c = product_case(i, weight, ProductCase::Layout::kPacked);
          if (worth_running(run, c, i)) check_product_case(device, run, c);
        }
      }
    }
  }
}

// Any strides against the reference.
inline void sweep_strided(RunsOf runs_of) {
  for (const auto& device : product_devices()) {
    for (const ProductRun& run : runs_of(device->caps())) {
      for (size_t i = 0; i < std::size(kProductSizes); ++i) {
        check_product_case(device, run,
                           product_case(i, MatrixFormat::kF32, ProductCase::Layout::kStrided));
      }
    }
  }
}

// Every activation, far out as well.
inline void sweep_activations(RunsOf runs_of) {
  for (const auto& device : product_devices()) {
    for (const ProductRun& run : runs_of(device->caps())) {
      if (run.beside || run.choice.strategy == MatmulStrategy::kWide) continue;
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

// A row has the same bits whatever other rows there are; but few rows are in f32, whatever the
// precision.
inline void sweep_row_bits(RunsOf runs_of) {
  for (const auto& device : product_devices()) {
    for (const ProductRun& run : runs_of(device->caps())) {
      CAPTURE(run.name);
      ProductCase c{.m = 40, .n = 21, .k = 77, .bias = true};
      Product product = make_product(c);
      std::vector<uint32_t> first;
      for (uint32_t m : {1u, 4u, 5u, 8u, 9u, 17u, 40u}) {
        if (run.choice.slices == 8 && m > 4) continue;
        if (run.precision == Precision::kF16 && m <= kMostFewRows) continue;
        product.problem.params.m = m;
        const std::vector<uint32_t> y = run_product(device, product, run, 1);
        const std::vector<uint32_t> row = product_row(product, y, 0);
        if (first.empty()) first = row;
        CHECK(row == first);
      }
    }
  }
}

// NaN and infinity go through.
inline void sweep_specials(RunsOf runs_of) {
  for (const auto& device : product_devices()) {
    for (const ProductRun& run : runs_of(device->caps())) {
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

}  // namespace vkformer::testing
