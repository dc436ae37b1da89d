// Norms that the products behind them take over in a decoding step.
#include "ops/norm_folding.h"

#include <array>
#include <functional>

#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/step_run.h"
#include "reference/layer_norm.h"
#include "reference/matmul.h"
#include "reference/rms_norm.h"
#include "support/packed_linear.h"

namespace vkformer::testing {
namespace {

enum class NormKind : uint8_t { kRms, kLayer };

struct Case {
  NormKind norm = NormKind::kRms;
  int64_t rows = 1, n = 64, k = 64;
  MatrixFormat format = MatrixFormat::kF32;
  bool bias = false;
  uint32_t live = 0;  // slots; 0: all
};

constexpr float kEpsilon = 1e-5f;

TensorId add_norm(Graph& graph, NormKind kind, TensorId x, TensorId gains) {
  const auto y = kind == NormKind::kRms
                     ? add_rms_norm(graph, x, gains, {kEpsilon})
                     : add_layer_norm(graph, {.x = x, .gain_bias = gains}, {.epsilon = kEpsilon});
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  return *y;
}

// The gains are (2, K), as models have them: gain, then a bias that rms_norm leaves alone.
Array reference_norm(NormKind kind, const Array& x, const Array& gains) {
  const int64_t k = x.dim(-1);
  Array gain = gains, bias = gains;
  gain.shape = bias.shape = {k};
  gain.data.resize(static_cast<size_t>(k));
  bias.data.erase(bias.data.begin(), bias.data.begin() + k);
  if (kind == NormKind::kRms) {
    reference::RmsNormOptions options;
    options.epsilon = kEpsilon;
    options.gain = &gain;
    return reference::rms_norm(x, options).value();
  }
  reference::LayerNormOptions options;
  options.epsilon = kEpsilon;
  options.gain = &gain;
  options.bias = &bias;
  return reference::layer_norm(x, options).value();
}

// y = relu(norm(x) W + bias), a step's graph.
struct Step {
  Graph graph;
  TensorMap given;
  Array expected;  // (rows, N)
};

Step make_step(const Case& c, const Array& x) {
  const auto seed = static_cast<uint32_t>(c.n + c.k);
  const Array gains = random_array({2, c.k}, seed + 2);
  const PackedLinear linear =
      random_linear(c.k, c.n, c.format, c.bias ? StoredBias::kOn : StoredBias::kOff, seed);
  Step step;
  Graph& graph = step.graph;
  graph.set_step(static_cast<uint32_t>(c.rows));
  const TensorId from = graph.add_external("x", DType::kF32, x.shape);
  const TensorId gain_id = graph.add_external("gains", DType::kF32, gains.shape);
  LinearWeight weight = linear.weight;
  weight.tensor = graph.add_external("weight", DType::kU32, linear.shape());
  const TensorId y = graph.add_external("y", DType::kF32, {c.rows, c.n});
  REQUIRE(add_linear_into(graph, add_norm(graph, c.norm, from, gain_id), weight,
                          {.activation = ActivationKind::kRelu}, y)
              .ok());
  step.given = {{"x", reference::to_tensor(x)},
                {"gains", reference::to_tensor(gains)},
                {"weight", word_tensor(linear.words, linear.shape())}};
  reference::MatmulOptions options;
  if (c.bias) options.bias = &linear.bias;
  options.activation = reference::activation_from_name("relu").value();
  step.expected = reference::matmul(reference_norm(c.norm, x, gains), linear.w, options).value();
  return step;
}

// As many dispatches as there should be; the rows that are live agree, three times the same bits.
void check_step(const TierDevice& device, const Case& c, const Array& x) {
  CAPTURE(device.tier);
  CAPTURE(c.rows);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(std::string(format_name(c.format)));
  Step step = make_step(c, x);
  const auto live = c.live == 0 ? static_cast<uint32_t>(c.rows) : c.live;
  const Tensor first = run_step(device, step.graph, step.given, live).at("y");
  for (int repeat = 0; repeat < 2; ++repeat)
    CHECK(run_step(device, step.graph, step.given, live).at("y").bytes == first.bytes);
  // Other rows of a tile with live ones may be written, too.
  Tensor found = first;
  Array expected = step.expected;
  found.shape[0] = expected.shape[0] = live;
  found.bytes.resize(static_cast<size_t>(4 * live * c.n));
  expected.data.resize(static_cast<size_t>(live * c.n));
  check_close(found, expected, tolerance_for(DType::kF32, c.k));
}

// A step of one row: `build` adds nodes to it, given its x (1, K), gains and a weight (K, N).
using Build = std::function<void(Graph&, TensorId x, TensorId gains, const LinearWeight&)>;

std::vector<std::string> kernels_of(const DeviceCaps& caps, const Build& build, int64_t rows = 1,
                                    uint32_t n = 192, bool step = true) {
  Graph graph;
  if (step) graph.set_step(static_cast<uint32_t>(rows));
  const TensorId x = graph.add_external("x", DType::kF32, {rows, 64});
  const TensorId gains = graph.add_external("gains", DType::kF32, {2, 64});
  const auto words = static_cast<int64_t>((n + 63) / 64 * 64 * 64);
  const LinearWeight weight{
      .tensor = graph.add_external("weight", DType::kF32, {words}), .n = n, .k = 64};
  build(graph, x, gains, weight);
  const auto plan = make_plan(graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  check_no_aliasing(*plan);
  std::vector<std::string> names;
  for (const Dispatch& d : plan->dispatches) names.emplace_back(d.op);
  return names;
}

void output(Graph& graph, TensorId y, const char* name) {
  graph.tensor(y).kind = TensorKind::kExternal;
  graph.tensor(y).name = name;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a product with a norm in front of it agrees with the two of them apart") {
    constexpr std::array<std::pair<int64_t, int64_t>, 5> kSizes = {
        {{64, 64}, {65, 33}, {130, 37}, {6, 1}, {24, 260}}};
    for (const TierDevice& device : tier_devices()) {
      for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
        for (const MatrixFormat format : kMatrixFormats) {
          for (const int64_t rows : {1, 3, 4, 8}) {
            for (const auto& [n, k] : kSizes) {
              const Case c{norm, rows, n, k, format, n % 4 == 2};
              check_step(device, c, random_array({rows, k}, 19));
            }
          }
        }
      }
    }
  }

  TEST_CASE("a product normalises its live rows only, and NaN stays in its row") {
    for (const TierDevice& device : tier_devices()) {
      for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
        check_step(device, {norm, 4, 70, 36, MatrixFormat::kF16, true, 2},
                   random_array({4, 36}, 5));
        Array x = random_array({4, 36}, 7);
        x[36 + 3] = kNan;
        x[2 * 36] = kInfinity;
        check_step(device, {norm, 4, 70, 36, MatrixFormat::kF32, true}, x);
      }
    }
  }

  TEST_CASE("a product's layer norm keeps small differences of large values") {
    for (const TierDevice& device : tier_devices()) {
      Array x = random_array({2, 64}, 11);
      // Sums of quarters: f32 holds all of them exactly.
      for (double& value : x.data) value = 4096 + std::round(4 * value) / 4;
      check_step(device, {NormKind::kLayer, 2, 64, 64}, x);
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("products of a step take the norm in front of them over") {
    DeviceCaps software = caps_of_tier(Tier::kBaseline);
    software.device_class = DeviceClass::kSoftware;
    for (const DeviceCaps& caps : {caps_of_tier(Tier::kSubgroup), caps_of_tier(Tier::kBaseline)}) {
      for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
        const Build build = [&](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
          const TensorId h = add_norm(g, kind, x, gains);
          output(g, add_linear(g, h, w, {}).value(), "y");
          output(g, add_linear(g, h, w, {}).value(), "z");
        };
        CHECK(kernels_of(caps, build) == Names{"matmul", "matmul"});
        CHECK(kernels_of(caps, build, 4) == Names{"matmul", "matmul"});
        const Names apart{kind == NormKind::kRms ? "rms_norm" : "layer_norm", "matmul", "matmul"};
        CHECK(kernels_of(software, build) == apart);
        CHECK(kernels_of(caps, build, 1, 192, false) == apart);  // a full pass
        CHECK(kernels_of(caps, build, 32) == apart);             // kernels for many rows
      }
    }
  }

  TEST_CASE("a norm stays where a product would do it too often") {
    const Build build = [&](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
      output(g, add_linear(g, add_norm(g, NormKind::kRms, x, gains), w, {}).value(), "y");
    };
    DeviceCaps gpu = caps_of_tier(Tier::kSubgroup);
    gpu.limits.max_storage_range = 1 << 30;
    CHECK(kernels_of(gpu, build, 1, 32000) == Names{"matmul"});
    CHECK(kernels_of(gpu, build, 4, 32000) == Names{"matmul"});
    CHECK(kernels_of(gpu, build, 1, 2000000) == Names{"rms_norm", "matmul"});
    CHECK(kernels_of(gpu, build, 4, 2000000) == Names{"rms_norm", "matmul"});
    CHECK(kernels_of(gpu, build, 8) == Names{"rms_norm", "matmul"});
  }

  TEST_CASE("a norm stays where something else needs it, or its product an addend") {
    const DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    CHECK(kernels_of(caps, [](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
            const TensorId h = add_norm(g, NormKind::kRms, x, gains);
            output(g, add_linear(g, h, w, {}).value(), "y");
            output(g, add_norm(g, NormKind::kRms, h, gains), "z");
          }) == Names{"rms_norm", "matmul", "rms_norm"});
    CHECK(kernels_of(caps, [](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
            const TensorId h = add_norm(g, NormKind::kRms, x, gains);
            output(g, h, "h");
            output(g, add_linear(g, h, w, {}).value(), "y");
          }) == Names{"rms_norm", "matmul"});
    CHECK(kernels_of(
              caps,
              [](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
                const TensorId h = add_norm(g, NormKind::kRms, x, gains);
                output(g, add_linear(g, h, w, {.residual = x}).value(), "y");
              },
              1, 64) == Names{"rms_norm", "matmul"});
    CHECK(kernels_of(
              caps,
              [](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
                const TensorId h = add_norm(g, NormKind::kRms, x, gains);
                const TensorId other = g.add_external("other", DType::kF32, {1, 64});
                REQUIRE(add_linear_into(g, other, w, {}, x).ok());
                output(g, add_linear(g, h, w, {}).value(), "y");
              },
              1, 64) == Names{"rms_norm", "matmul", "matmul"});
    CHECK(kernels_of(caps, [](Graph& g, TensorId x, TensorId gains, const LinearWeight& w) {
            const auto h =
                add_layer_norm(g, {.x = x, .gain_bias = gains, .residual = x}, {.epsilon = 1});
            output(g, add_linear(g, *h, w, {}).value(), "y");
          }) == Names{"layer_norm", "matmul"});
  }
}

}  // namespace vkformer::testing
