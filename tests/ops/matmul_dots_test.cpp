// Products of precision int8: rows in signed bytes times weights in blocks, in every kernel.
#include "ops/matmul_dots.h"

#include <algorithm>

#include "ops/activation.h"
#include "recording/dot_proof.h"
#include "reference/matmul.h"
#include "reference/rows_in_bytes.h"
#include "support/packed_linear.h"

namespace vkformer::testing {
namespace {

// A way of the device that adds every row up in one order.
struct DotsWay {
  std::string name;
  DeviceCaps caps;
};

std::vector<DotsWay> ways_of_dots(const VulkanDevice& device) {
  std::vector<DotsWay> list;
  for (const bool dot8 : {true, false}) {
    if (dot8 && !device.caps().dot8()) continue;
    for (const DeviceClass of : {DeviceClass::kSoftware, DeviceClass::kDiscrete}) {
      // One unit gets blocks of 64, a thousand get those of 32.
      for (const uint32_t units : {1u, 1000u}) {
        if (of == DeviceClass::kSoftware && units > 1) continue;
        DeviceCaps caps = device.caps();
        caps.has_dot8 = dot8;
        caps.device_class = of;
        caps.compute_units = units;
        caps.sums_in_order = true;
        list.push_back({std::string(choice_name(of)) + (dot8 ? ", dot8, " : ", plain, ") +
                            std::to_string(units) + " units",
                        caps});
      }
    }
  }
  return list;
}

struct DotsCase {
  int64_t rows, n, k;
  MatrixFormat format;
  ActivationKind activation = ActivationKind::kNone;
  GatePairs gate = GatePairs::kNo;
};

Array rows_of(const DotsCase& c) {
  return reference::clear_of_ties(random_array({c.rows, c.k}, 11));
}

PackedLinear weight_of(const DotsCase& c) {
  return random_linear(c.k, c.n, c.format, StoredBias::kOn, 5);
}

Array first_rows(const Array& x, int64_t rows) {
  const auto end = x.data.begin() + static_cast<ptrdiff_t>(rows * x.dim(-1));
  return {{rows, x.dim(-1)}, {x.data.begin(), end}};
}

struct DotsRun {
  Tensor y;
  std::vector<KernelId> kernels;
};

DotsRun run_dots(const std::shared_ptr<VulkanDevice>& device, const DeviceCaps& caps,
                 const DotsCase& c, const Array& x) {
  const PackedLinear linear = weight_of(c);
  PreparedOperator op;
  LinearWeight weight = linear.weight;
  weight.tensor = op.bind("weight", word_tensor(linear.words, linear.shape()));
  const auto y = add_linear(op.graph, op.bind("x", reference::to_tensor(x)), weight,
                            {.activation = c.activation, .gate = c.gate});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  GraphRunOptions options;
  options.precision = Precision::kInt8;
  options.poison = GraphRunOptions::Poison::kOn;
  options.guards = GraphRunOptions::Guards::kOn;
  options.repeats = 2;
  options.caps = caps;
  auto report = run_graph(device, op.graph, op.inputs, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  return {report->outputs.at("y"), report->kernels};
}

Array expected_dots(const DotsCase& c, const Array& x) {
  const PackedLinear linear = weight_of(c);
  reference::MatmulOptions options;
  options.bias = &linear.bias;
  options.activation = reference::ActivationKind::kIdentity;
  if (c.activation == ActivationKind::kRelu) options.activation = reference::ActivationKind::kRelu;
  return reference::matmul(reference::rows_in_bytes(x), linear.w, options).value();
}

// Plans of several products with the same rows.
struct SharedRows {
  Graph graph;
  TensorId x = kNoTensor;

  explicit SharedRows(Shape shape) { x = graph.add_external("x", DType::kF32, std::move(shape)); }
  TensorId product(TensorId of, MatrixFormat format, bool exact = false) {
    const auto words = static_cast<int64_t>(matrix_words(format, 64, 64));
    LinearWeight weight{.n = 64, .k = 64, .format = format, .exact = exact};
    weight.tensor =
        graph.add_external("w" + std::to_string(graph.tensors().size()), DType::kU32, {words});
    return add_linear(graph, of, weight, {}).value();
  }
  std::vector<KernelId> kernels(const DeviceCaps& caps) const {
    const auto plan = make_plan(graph, caps, Precision::kInt8);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    std::vector<KernelId> list;
    for (const Dispatch& d : plan->dispatches) list.push_back(d.kernel);
    return list;
  }
};

uint32_t bits_at(const Tensor& y, int64_t i) {
  return words_of(y)[static_cast<size_t>(i)];
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("products of bytes agree with the reference in every format and have one set of bits") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      CAPTURE(device.tier);
      for (const MatrixFormat format : kMatrixFormats) {
        if (!has_integer_products(format)) continue;
        CAPTURE(format_name(format));
        const DotsCase c{.rows = 37, .n = 71, .k = 300, .format = format};
        const Array x = rows_of(c);
        std::optional<Tensor> all;
        for (const DotsWay& way : ways_of_dots(*device.device)) {
          CAPTURE(way.name);
          const Tensor y = run_dots(device.device, way.caps, c, x).y;
          check_close(y, expected_dots(c, x), tolerance_for(DType::kF32, c.k));
          if (!all) all = y;
          CHECK(y.bytes == all->bytes);
          // Each number of rows makes another pipeline.
          if (format != MatrixFormat::kQ8 && format != MatrixFormat::kQ4K) continue;
          for (const int64_t rows : {1, 3, 8}) {
            const Tensor few = run_dots(device.device, way.caps, c, first_rows(x, rows)).y;
            CHECK(std::equal(few.bytes.begin(), few.bytes.end(), all->bytes.begin()));
          }
        }
      }
    }
  }

  TEST_CASE("products of bytes of odd sizes write nothing else") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      for (const DotsWay& way : ways_of_dots(*device.device)) {
        CAPTURE(way.name);
        for (const MatrixFormat format : {MatrixFormat::kQ4M, MatrixFormat::kQ6K}) {
          for (const std::array<int64_t, 3>& size :
               {std::array<int64_t, 3>{1, 1, 1}, {9, 8, 33}, {65, 130, 64}, {17, 64, 257}}) {
            const auto [rows, n, k] = size;
            const DotsCase c{rows, n, k, format, ActivationKind::kRelu};
            CAPTURE(size[0]);
            const Array x = rows_of(c);
            check_close(run_dots(device.device, way.caps, c, x).y, expected_dots(c, x),
                        tolerance_for(DType::kF32, k));
          }
        }
      }
    }
  }

  TEST_CASE("rows with a NaN or an infinity are NaN, and the others keep their bits") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      for (const DotsWay& way : ways_of_dots(*device.device)) {
        CAPTURE(way.name);
        const DotsCase c{.rows = 12, .n = 66, .k = 100, .format = MatrixFormat::kQ4K};
        Array x = rows_of(c);
        const Tensor clean = run_dots(device.device, way.caps, c, x).y;
        x[3 * c.k + 40] = std::numeric_limits<double>::quiet_NaN();
        x[7 * c.k] = std::numeric_limits<double>::infinity();
        x[8 * c.k + 99] = -std::numeric_limits<double>::infinity();
        const Tensor y = run_dots(device.device, way.caps, c, x).y;
        const std::vector<float> values = y.to_floats().value();
        for (int64_t i = 0; i < c.rows * c.n; ++i) {
          const int64_t row = i / c.n;
          const bool bad = row == 3 || row == 7 || row == 8;
          if (bad) CHECK(std::isnan(values[static_cast<size_t>(i)]));
          if (!bad) CHECK(bits_at(y, i) == bits_at(clean, i));
        }
      }
    }
  }

  TEST_CASE("rows of zeros and of denormals give the bias") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      const DotsCase c{.rows = 3, .n = 64, .k = 64, .format = MatrixFormat::kQ4_1};
      Array x = reference::filled({c.rows, c.k}, 0.0);
      for (int64_t i = 0; i < c.k; ++i) x[i] = 1e-40, x[c.k + i] = -1.4e-36;
      const Tensor y = run_dots(device.device, device.device->caps(), c, x).y;
      const PackedLinear linear = weight_of(c);
      for (int64_t i = 0; i < c.rows * c.n; ++i) {
        CHECK(y.to_floats().value()[static_cast<size_t>(i)] ==
              static_cast<float>(linear.bias[i % c.n]));
      }
    }
  }

  TEST_CASE("products of bytes are within half a step of every element of the f32 product") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      const DotsCase c{.rows = 20, .n = 64, .k = 256, .format = MatrixFormat::kQ5_0};
      const Array x = random_array({c.rows, c.k}, 23);
      const PackedLinear linear = weight_of(c);
      reference::MatmulOptions options;
      options.bias = &linear.bias;
      const Array exact = reference::matmul(x, linear.w, options).value();
      const Tensor y = run_dots(device.device, device.device->caps(), c, x).y;
      const std::vector<float> values = y.to_floats().value();
      for (int64_t i = 0; i < c.rows * c.n; ++i) {
        double bound = 1e-4;
        for (int64_t k = 0; k < c.k; ++k) {
          const int64_t row = i / c.n * c.k, block = k / 32 * 32;
          double peak = 0;
          for (int64_t j = block; j < block + 32; ++j) peak = std::max(peak, std::fabs(x[row + j]));
          bound += 0.5 * peak / 127 * std::fabs(linear.w[k * c.n + i % c.n]);
        }
        CHECK(std::fabs(values[static_cast<size_t>(i)] - exact[i]) <= bound);
      }
    }
  }

  TEST_CASE("a gated layer of bytes has the bits of every way") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      const DotsCase c{.rows = 33,
                       .n = 130,
                       .k = 65,
                       .format = MatrixFormat::kQ4,
                       .activation = ActivationKind::kSilu,
                       .gate = GatePairs::kPairs};
      std::optional<Tensor> all;
      for (const DotsWay& way : ways_of_dots(*device.device)) {
        CAPTURE(way.name);
        const Tensor y = run_dots(device.device, way.caps, c, rows_of(c)).y;
        if (!all) all = y;
        CHECK(y.bytes == all->bytes);
      }
    }
  }

  TEST_CASE("integer dot products are used where the device has them, and prove themselves") {
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      const bool before = device.device->caps().dot8();
      REQUIRE(prove_dots(device.device).ok());
      CHECK(device.device->caps().dot8() == before);
      const DotsCase c{.rows = 1, .n = 64, .k = 64, .format = MatrixFormat::kQ8};
      const DotsRun run = run_dots(device.device, device.device->caps(), c, rows_of(c));
      REQUIRE(run.kernels.size() == 2);
      CHECK(run.kernels[0] == KernelId::quantize_rows__f32_none_i8);
      CHECK(run.kernels[1] == (before ? KernelId::matmul_dots__i8_blocks_f32_dot8
                                      : KernelId::matmul_dots__i8_blocks_f32));
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("precision int8 concerns quantized weights and quantizes rows once") {
    using enum KernelId;
    for (const bool dot8 : {false, true}) {
      DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
      caps.device_class = DeviceClass::kDiscrete;
      caps.has_dot8 = dot8;
      const KernelId few = dot8 ? matmul_dots__i8_blocks_f32_dot8 : matmul_dots__i8_blocks_f32;
      const KernelId many =
          dot8 ? matmul_dot_tiles__i8_blocks_f32_dot8 : matmul_dot_tiles__i8_blocks_f32;
      for (const int64_t rows : {1, 8, 9, 100}) {
        const KernelId one = rows <= 8 ? few : many;
        SharedRows three({rows, 64});
        three.product(three.x, MatrixFormat::kQ8_0);
        three.product(three.x, MatrixFormat::kQ6K);
        three.product(three.x, MatrixFormat::kQ4);
        CHECK(three.kernels(caps) == std::vector{quantize_rows__f32_none_i8, one, one, one});
        SharedRows chain({rows, 64});
        chain.product(chain.product(chain.x, MatrixFormat::kQ8), MatrixFormat::kQ8);
        CHECK(chain.kernels(caps) ==
              std::vector{quantize_rows__f32_none_i8, one, quantize_rows__f32_none_i8, one});
        for (const MatrixFormat other :
             {MatrixFormat::kF32, MatrixFormat::kF16, MatrixFormat::kBF16}) {
          SharedRows plain({rows, 64});
          plain.product(plain.x, other);
          CHECK(plain.kernels(caps).size() == 1);
          CHECK(plain.kernels(caps)[0] != one);
        }
        SharedRows exact({rows, 64});
        exact.product(exact.x, MatrixFormat::kQ8, true);
        CHECK(exact.kernels(caps).size() == 1);
      }
    }
  }

  TEST_CASE("a demoted kernel with integer dot products leaves the plain one") {
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.has_dot8 = true;
    caps.demoted = {KernelId::matmul_dots__i8_blocks_f32_dot8};
    SharedRows one({1, 64});
    one.product(one.x, MatrixFormat::kQ8);
    CHECK(one.kernels(caps).back() == KernelId::matmul_dots__i8_blocks_f32);
  }
}

}  // namespace vkformer::testing
