// The pass that fuses nodes of a graph, pattern by pattern, and products of a norm on the device.
#include "ops/fusion.h"

#include <array>
#include <functional>

#include "ops/combine.h"
#include "ops/conv.h"
#include "ops/embedding.h"
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

struct FusionCase {
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

void output(Graph& graph, TensorId y, const char* name) {
  graph.tensor(y).kind = TensorKind::kExternal;
  graph.tensor(y).name = name;
}

// y = relu(norm(x) W + bias), a step's graph.
struct Step {
  Graph graph;
  TensorMap given;
  Array expected;  // (rows, N)
};

Step make_step(const FusionCase& c, const Array& x) {
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
  output(graph,
         add_linear(graph, add_norm(graph, c.norm, from, gain_id), weight,
                    {.activation = ActivationKind::kRelu})
             .value(),
         "y");
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
void check_step(const TierDevice& device, const FusionCase& c, const Array& x) {
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

using Names = std::vector<std::string>;

// What a pass over the graph fuses: patterns in the table's order. A second pass finds nothing.
Names fused(const Graph& graph, const DeviceCaps& caps = caps_of_tier(Tier::kBaseline)) {
  const FusedGraph once = fuse(graph, caps, Precision::kF32);
  CHECK(fuse(once.graph, caps, Precision::kF32).fusions.empty());
  CHECK(once.graph.nodes().size() + once.fusions.size() == graph.nodes().size());
  Names names;
  for (const Fusion& f : once.fusions) names.emplace_back(f.pattern);
  const auto plan = make_plan(graph, caps, Precision::kF32);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  CHECK(plan->fusions == once.fusions);
  check_no_aliasing(*plan);
  return names;
}

// x (2, 64), a weight (64, 64) as a packed one and as a tensor, gains (2, 64).
struct Parts {
  Graph graph;
  TensorId x = graph.add_external("x", DType::kF32, {2, 64});
  TensorId matrix = graph.add_external("matrix", DType::kF32, {64, 64});
  TensorId gains = graph.add_external("gains", DType::kF32, {2, 64});
  LinearWeight weight{
      .tensor = graph.add_external("weight", DType::kF32, {64 * 64}), .n = 64, .k = 64};

  TensorId linear(const LinearAttrs& attrs = {}) {
    return add_linear(graph, x, weight, attrs).value();
  }
  TensorId relu(TensorId from) {
    return add_activation(graph, from, {ActivationKind::kRelu}).value();
  }
  // Somebody else reads it.
  void read(TensorId from) { output(graph, relu(from), "other"); }
};

// `build` makes the pattern's two nodes and returns what is between them and the result. They are
// fused as they are, but not with another reader in between, or where that is an output.
using Between = std::pair<TensorId, TensorId>;
void check_pattern(const char* name, const std::function<Between(Parts&)>& build) {
  CAPTURE(name);
  Parts alone;
  output(alone.graph, build(alone).second, "y");
  CHECK(fused(alone.graph) == Names{name});
  Parts read;
  const Between two = build(read);
  output(read.graph, two.second, "y");
  read.read(two.first);
  CHECK(fused(read.graph).empty());
  Parts tapped;
  const Between ends = build(tapped);
  output(tapped.graph, ends.second, "y");
  output(tapped.graph, ends.first, "tap");
  CHECK(fused(tapped.graph).empty());
  Parts changed;  // a node in between writes what the first one reads
  output(changed.graph, build(changed).second, "y");
  std::vector<Node> nodes = changed.graph.nodes();
  Node writer = nodes.back();
  writer.inputs.assign(1, changed.gains);
  writer.op = static_cast<uint16_t>(OpId::k_activation);
  writer.op_name = "activation";
  writer.attrs = std::make_shared<const ActivationAttrs>();
  writer.outputs = {nodes.front().inputs[0]};
  nodes.insert(nodes.end() - 1, writer);
  changed.graph.set_nodes(std::move(nodes));
  CHECK(fuse(changed.graph, caps_of_tier(Tier::kBaseline), Precision::kF32).fusions.empty());
}

EmbeddingInputs embedding_inputs(Graph& graph, int64_t width) {
  return {.ids = graph.add_external("ids", DType::kU32, {2}),
          .table = graph.add_external("table", DType::kF32, {5, width})};
}

TensorId add_conv_of(Graph& graph, uint32_t leading_tokens) {
  const int64_t tokens = 9 + leading_tokens;
  const TensorId x = graph.add_external("pixels", DType::kF32, {1, tokens, 4});
  const TensorId table = graph.add_external("table", DType::kF32, {4, 2});
  const ConvAttrs attrs{.source = {.order = ChannelOrder::kLast, .height = 3, .width = 3},
                        .groups = 4,
                        .leading_tokens = leading_tokens};
  const auto y = add_conv(graph, x, table, attrs);
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  return *y;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a product with a norm in front of it agrees with the two of them apart") {
    constexpr std::array<std::pair<int64_t, int64_t>, 5> kSizes = {
        {{64, 64}, {65, 33}, {130, 37}, {6, 1}, {24, 260}}};
    for (const TierDevice& device : tier_devices()) {
      for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
        for (const MatrixFormat format : kMatrixFormats) {
          for (const int64_t rows : {1, 3, 4, 8}) {
            if (is_gguf_format(format) && rows != 3) continue;
            for (const auto& [n, k] : kSizes) {
              const FusionCase c{norm, rows, n, k, format, n % 4 == 2};
              check_step(device, c, random_array({rows, k}, 19));
            }
          }
        }
      }
    }
  }

  TEST_CASE("a product normalizes its live rows only, and NaN stays in its row") {
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
  TEST_CASE("every pattern joins two nodes, but none over a value that somebody else needs") {
    check_pattern("embedding + layer_norm", [](Parts& p) -> Between {
      const TensorId sum =
          add_embedding(p.graph, embedding_inputs(p.graph, 64), {.vocabulary = 5, .width = 64})
              .value();
      return {sum, add_layer_norm(p.graph, {.x = sum, .gain_bias = p.gains}, {}).value()};
    });
    check_pattern("linear + gated_activation", [](Parts& p) -> Between {
      const TensorId product = p.linear();
      return {product,
              add_gated_activation(p.graph, product, {.pairs = GatePairs::kPairs}).value()};
    });
    check_pattern("matmul + activation", [](Parts& p) -> Between {
      const TensorId product = p.linear();
      return {product, p.relu(product)};
    });
    check_pattern("matmul + activation", [](Parts& p) -> Between {
      const TensorId product = add_matmul(p.graph, p.x, p.matrix, p.x, {}).value();
      return {product, p.relu(product)};
    });
    check_pattern("linear + combine", [](Parts& p) -> Between {
      const TensorId product = p.linear();
      return {product, add_combine(p.graph, product, p.gains, {}).value()};
    });
    check_pattern("linear + combine", [](Parts& p) -> Between {
      const TensorId product = p.linear();
      return {product, add_combine(p.graph, p.gains, product, {}).value()};
    });
    check_pattern("conv + activation", [](Parts& p) -> Between {
      const TensorId sums = add_conv_of(p.graph, 0);
      return {sums, p.relu(sums)};
    });
  }

  TEST_CASE("what follows a product goes into it in the order in which it is computed") {
    Parts p;
    p.graph.set_scope("layer");
    output(p.graph, p.linear({.alpha = 0.5f, .activation = ActivationKind::kRelu, .residual = p.x}),
           "y");
    const FusedGraph fused_graph = fuse(p.graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
    CHECK(fused_graph.fusions.size() == 2);
    REQUIRE(fused_graph.graph.nodes().size() == 1);
    const Node& node = fused_graph.graph.nodes()[0];
    CHECK(node.attrs_text == "alpha=0.5 relu residual");
    CHECK(node.label == "layer");
    CHECK(node.inputs == std::vector<TensorId>{p.x, p.weight.tensor, p.x});
    const auto plan = make_plan(p.graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
    REQUIRE(plan.ok());
    CHECK(plan->dispatches.size() == 1);
    CHECK(
        plan->dump().starts_with("fused matmul + activation  # layer\n"
                                 "fused linear + combine  # layer\n"));
    Parts sum_first;
    output(sum_first.graph, sum_first.relu(sum_first.linear({.residual = sum_first.x})), "y");
    CHECK(fused(sum_first.graph) == Names{"linear + combine"});
    Parts gated;  // has no room for a residual
    const TensorId other = gated.graph.add_external("other", DType::kF32, {2, 32});
    output(gated.graph, gated.linear({.gate = GatePairs::kPairs, .residual = other}), "y");
    CHECK(fused(gated.graph) == Names{"linear + gated_activation"});
  }

  TEST_CASE("nodes stay apart where no kernel does what both do") {
    const auto none = [](const std::function<TensorId(Parts&)>& build) {
      Parts p;
      output(p.graph, build(p), "y");
      CHECK(fused(p.graph).empty());
    };
    none([](Parts& p) {  // gates in the first half
      return add_gated_activation(p.graph, p.linear(), {}).value();
    });
    none([](Parts& p) { return add_activation(p.graph, p.linear(), {}).value(); });
    none([](Parts& p) { return add_combine(p.graph, p.linear(), p.x, {.alpha = 0.5f}).value(); });
    none([](Parts& p) {
      const TensorId product = p.linear();
      return add_combine(p.graph, product, product, {}).value();
    });
    none([](Parts& p) {
      const TensorId product = add_matmul(p.graph, p.x, p.matrix, kNoTensor, {}).value();
      return add_combine(p.graph, product, p.x, {}).value();
    });
    none([](Parts& p) { return p.relu(add_conv_of(p.graph, 1)); });
    none([](Parts& p) {  // the result is seen as one long row
      const TensorId y = p.relu(add_matmul(p.graph, p.x, p.matrix, kNoTensor, {}).value());
      p.graph.tensor(y).shape = {1, 128};
      return y;
    });
    none([](Parts& p) {
      p.gains = p.graph.add_external("wide", DType::kF32, {2, 2049});
      const TensorId sum =
          add_embedding(p.graph, embedding_inputs(p.graph, 2049), {.vocabulary = 5, .width = 2049})
              .value();
      return add_layer_norm(p.graph, {.x = sum, .gain_bias = p.gains}, {}).value();
    });
    none([](Parts& p) {  // a norm of a sum
      const TensorId sum =
          add_embedding(p.graph, embedding_inputs(p.graph, 64), {.vocabulary = 5, .width = 64})
              .value();
      return add_layer_norm(p.graph, {.x = sum, .gain_bias = p.gains, .residual = p.x}, {}).value();
    });
  }

  TEST_CASE("products whose kernel gives wrong results do not take a norm over") {
    Parts p;
    p.graph.set_step(2);
    output(
        p.graph,
        add_linear(p.graph, add_norm(p.graph, NormKind::kRms, p.x, p.gains), p.weight, {}).value(),
        "y");
    DeviceCaps caps = caps_of_tier(Tier::kSubgroup);
    caps.compiler.has_int64 = true;
    CHECK(fused(p.graph, caps) == Names{"norm + linear"});
    caps.demoted = {KernelId::matmul_rows__f32_f32_f32_int64};
    CHECK(fused(p.graph, caps).empty());
  }

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
                REQUIRE(add_linear(g, other, w, {}).ok());
                g.node(g.nodes().size() - 1).outputs = {x};
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
