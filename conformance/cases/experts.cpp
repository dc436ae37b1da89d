// The cases of experts: its checks, and what the benchmark times.
#include "ops/experts.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/step_graph.h"
#include "conformance/weights_by_expert.h"
#include "params/matmul.h"
#include "reference/experts.h"

namespace vkformer::conformance {
namespace {

struct Mixture {
  const char* name;
  int64_t rows, width, ffn, experts, choices;
  bool step = false, gate = true, bias = false, always = false, residual = true;
  float limit = 0, scale = 1;
};

// Steps and few rows, where each choice reads its expert. Many rows, in tiles of 32 choices: fewer
// than a tile, whole ones and one more. Also experts that nobody chose, odd widths and whole
// panels.
constexpr Mixture kMixtures[] = {
    {"one", 1, 1, 1, 1, 1},
    {"few", 3, 33, 21, 5, 2},
    {"few", 4, 64, 64, 8, 3, false, true, true},
    {"step", 4, 36, 70, 6, 2, true},
    {"step", 2, 128, 96, 16, 8, true, true, true, true, true, 7.0f},
    {"many", 5, 40, 24, 4, 4},
    {"many", 37, 33, 17, 7, 3, false, true, true, false, false, 0, 0.5f},
    {"many", 64, 64, 32, 2, 1},
    {"many", 65, 20, 65, 2, 1, false, true, false, true},
    {"many", 100, 64, 128, 40, 2, false, true, true, false, true, 0.5f, 2},
    {"plain", 3, 31, 20, 3, 2, false, false},
    {"plain", 45, 31, 20, 3, 2, false, false, true},
};

// Random routes of K different experts a row, and one more whose weight is of `always`.
struct Routes {
  Array experts, weights;  // (R, K + A)
  std::vector<uint32_t> words;
};

Routes routes_of(const Mixture& m) {
  Noise noise(11);
  const int64_t entries = m.choices + (m.always ? 1 : 0);
  Routes routes{
      reference::filled({m.rows, entries}, 0), reference::filled({m.rows, entries}, 0), {}};
  for (int64_t row = 0; row < m.rows; ++row) {
    // The last expert stays without a row where there are many.
    const int64_t from = m.experts > m.choices + 1 ? m.experts - 1 : m.experts;
    const int64_t first = noise.below(from);
    for (int64_t k = 0; k < entries; ++k) {
      const int64_t at = row * entries + k;
      routes.experts[at] = static_cast<double>(k < m.choices ? (first + k) % from : m.experts);
      routes.weights[at] = static_cast<double>(static_cast<float>(noise.uniform()));
      routes.words.push_back(static_cast<uint32_t>(routes.experts[at]));
      routes.words.push_back(std::bit_cast<uint32_t>(static_cast<float>(routes.weights[at])));
    }
  }
  return routes;
}

Array unit_matrices(int64_t experts, int64_t k, int64_t n, uint64_t seed) {
  return scaled(random_array({experts, k, n}, seed), 1 / std::sqrt(static_cast<double>(k)));
}

// Of rows (R, K + A) the first K.
Array first_columns(const Array& a, int64_t count) {
  Array first = reference::filled({a.dim(0), count}, 0);
  for (int64_t i = 0; i < first.size(); ++i) first[i] = a[i / count * a.dim(1) + i % count];
  return first;
}

Result<CheckCase> mixture_case(const Mixture& m, MatrixFormat format, Content content) {
  const int64_t columns = m.gate ? 2 * m.ffn : m.ffn;
  const Array x = random_array({m.rows, m.width}, 1, content);
  const Array residual = random_array({m.rows, m.width}, 2);
  const Array always = random_array({m.rows, m.width}, 3);
  reference::ExpertMatrices given{unit_matrices(m.experts, m.width, columns, 4),
                                  {},
                                  unit_matrices(m.experts, m.ffn, m.width, 5),
                                  {}};
  if (m.bias) {
    given.up_bias = random_array({m.experts, columns}, 6);
    given.down_bias = random_array({m.experts, m.width}, 7);
  }
  const Routes routes = routes_of(m);
  CheckCase made;
  if (m.step) {
    made.op.graph.set_step(u32(m.rows));
    made.live_slots = u32(m.rows);
  }
  Tensor words_of_routes = words(routes.words);
  words_of_routes.shape = {m.rows, routes.experts.dim(1), 2};
  ExpertsInputs inputs{.x = made.op.bind("x", floats(x)),
                       .routes = made.op.bind("routes", std::move(words_of_routes))};
  if (m.always) inputs.always = made.op.bind("always", floats(always));
  if (m.residual) inputs.residual = made.op.bind("residual", floats(residual));
  VKF_ASSIGN(const ExpertWeight up, bind_experts(made, "up", given.up, given.up_bias, format));
  VKF_ASSIGN(const ExpertWeight down,
             bind_experts(made, "down", given.down, given.down_bias, format));
  const bool quick_gelu = m.limit > 0;
  VKF_ASSIGN(const TensorId y, add_experts(made.op.graph, inputs, up, down,
                                           {.choices = u32(m.choices),
                                            .activation = quick_gelu ? ActivationKind::kQuickGelu
                                                                     : ActivationKind::kSilu,
                                            .gate = m.gate ? GatePairs::kPairs : GatePairs::kNo,
                                            .gate_limit = m.limit,
                                            .scale = m.scale}));
  made.op.name_output(y, "y");
  given.up = round_to_format(std::move(given.up), format);
  given.down = round_to_format(std::move(given.down), format);
  using Kind = reference::ActivationKind;
  VKF_ASSIGN(Array expected,
             reference::experts(x, first_columns(routes.experts, m.choices),
                                first_columns(routes.weights, m.choices), given,
                                {.activation = quick_gelu ? Kind::kQuickGelu : Kind::kSilu,
                                 .gate = m.gate,
                                 .gate_limit = m.limit,
                                 .scale = m.scale}));
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (m.residual) expected[i] += residual[i];
    if (m.always) {
      expected[i] +=
          m.scale * always[i] * routes.weights[(i / m.width + 1) * routes.weights.dim(1) - 1];
    }
  }
  const double magnitude = magnitude_of(expected);
  made.expected.emplace("y", Expected{std::move(expected), terms(m.width + m.ffn), magnitude});
  return made;
}

// A layer of a real model whose weights fit into a binding of the least device: packed, of any
// values.
Status mixture_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), width = in.number("width"), ffn = in.number("ffn");
  const int64_t experts = in.number("experts"), choices = in.number("choices");
  if (in.number("step", 0) != 0) in.graph().set_step(u32(rows));
  const auto weight = [&](const char* name, int64_t n, int64_t k) {
    const int64_t filled = (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
    return ExpertWeight{
        {.tensor = in.floats(name, {k, experts * filled}), .n = u32(experts * filled), .k = u32(k)},
        u32(experts),
        u32(n)};
  };
  std::vector<uint32_t> routes;
  for (int64_t i = 0; i < rows * choices; ++i) {
    routes.push_back(u32(i * 7 % experts));
    routes.push_back(std::bit_cast<uint32_t>(1.0f / static_cast<float>(choices)));
  }
  const ExpertsInputs inputs{.x = in.floats("x", {rows, width}),
                             .routes = in.words("routes", {rows, choices, 2}, routes)};
  VKF_ASSIGN(const TensorId y, add_experts(in.graph(), inputs, weight("up", 2 * ffn, width),
                                           weight("down", width, ffn), {.choices = u32(choices)}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void experts_cases(OperatorCases& cases) {
  for (const Mixture& m : kMixtures) {
    const std::string size = size_text({m.rows, m.width, m.ffn, m.experts, m.choices});
    for (const MatrixFormat format : kMatrixFormats) {
      // Each is a pipeline of its shape: those of GGUF files are checked for few rows and for many.
      if (is_gguf_format(format) && m.rows != 4 && m.rows != 37) continue;
      cases.check(std::string(m.name) + "-" + format_name(format) + "/" + size,
                  m.rows < 50 && format != MatrixFormat::kQ4M && !is_gguf_format(format),
                  [=] { return mixture_case(m, format, Content::kNormal); });
    }
    cases.check(std::string(m.name) + "-special/" + size, m.rows == 37,
                [=] { return mixture_case(m, MatrixFormat::kF32, Content::kSpecial); });
  }
  cases.time_graph("granite-1b-a400m 1 token",
                   "rows=1 step=1 width=1024 ffn=512 experts=32 choices=8", mixture_graph);
  cases.time_graph("granite-1b-a400m 512", "rows=512 width=1024 ffn=512 experts=32 choices=8",
                   mixture_graph);
}

}  // namespace vkformer::conformance
