// The cases of causal_conv: its checks, and what the benchmark times.
#include "ops/causal_conv.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/state_steps.h"
#include "conformance/step_graph.h"
#include "reference/state_scan.h"

namespace vkformer::conformance {
namespace {

struct ConvSize {
  int64_t items, tokens, taps, channels;
  bool gated;
};

constexpr ConvSize kConvSizes[] = {{1, 1, 1, 1, false},  {2, 5, 4, 7, false},
                                   {3, 33, 3, 40, true}, {2, 40, 2, 65, true},
                                   {1, 9, 16, 5, false}, {2, 129, 4, 700, false}};

// Columns: two others, the channels, and where there are gates those of inputs and of outputs, then
// three others.
struct ConvCall {
  ConvSize s;
  int64_t width() const { return 5 + s.channels * (s.gated ? 3 : 1); }
  CausalConvAttrs attrs() const {
    CausalConvAttrs a{.first = 2, .activation = ActivationKind::kSilu, .bias = !s.gated};
    if (!s.gated) return a;
    a.activation = ActivationKind::kNone;
    a.gates = CausalConvAttrs::Gates::kYes;
    a.columns = CausalConvAttrs::Columns::kChannels;
    a.in_gate = u32(2 + s.channels);
    a.out_gate = u32(2 + 2 * s.channels);
    return a;
  }
  reference::CausalConvOptions options() const {
    const CausalConvAttrs a = attrs();
    return {.activation =
                s.gated ? reference::ActivationKind::kIdentity : reference::ActivationKind::kSilu,
            .bias = !s.gated,
            .first = 2,
            .gated = s.gated,
            .in_gate = a.in_gate,
            .out_gate = a.out_gate,
            .all_columns = !s.gated};
  }
  Array taps() const { return random_array({s.taps + (s.gated ? 0 : 1), s.channels}, 9); }
};

Result<CheckCase> conv_full_case(const ConvCall& c, Content content, bool masked) {
  const ConvSize& s = c.s;
  const Array x = random_array({s.items, s.tokens, c.width()}, 1, content);
  const Array taps = c.taps(), mask = random_mask({s.items, s.tokens}, 3, 0.8);
  reference::CausalConvOptions options = c.options();
  CheckCase made;
  CausalConvInputs in{.x = made.op.bind("x", floats(x)),
                      .taps = made.op.bind("taps", floats(taps))};
  if (masked) {
    options.mask = &mask;
    const int64_t line = (s.tokens + 31) / 32;
    std::vector<uint32_t> bits(static_cast<size_t>(s.items * line), 0u);
    for (int64_t i = 0; i < mask.size(); ++i) {
      if (mask[i] == 0) continue;
      const int64_t t = i % s.tokens;
      bits[static_cast<size_t>(i / s.tokens * line + t / 32)] |= 1u << (t % 32);
    }
    in.mask = made.op.bind("mask", words(bits));
  }
  VKF_ASSIGN(Array y, reference::causal_conv(x, taps, options));
  VKF_ASSIGN(const TensorId id, add_causal_conv(made.op.graph, in, c.attrs()));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y), terms(16 + s.taps), 4});
  return made;
}

// What the inputs of the convolution are: x, or x times its gate.
double conv_input(const ConvCall& c, const Array& x, int64_t row, int64_t channel) {
  const int64_t at = row * c.width() + 2 + channel;
  return c.s.gated ? x[at] * x[at + c.s.channels] : x[at];
}

// Prompts of one token less each than the one before, of two rows an item.
Result<CheckCase> conv_prompt_case(const ConvCall& c) {
  const ConvSize& s = c.s;
  constexpr int64_t kBeams = 2, kLines = 3;
  const Array x = random_array({s.items, s.tokens, c.width()}, 1), taps = c.taps();
  Array states = random_array({s.items * kBeams, kLines, s.taps - 1, s.channels}, 5);
  CheckCase made;
  CausalConvInputs in{.x = made.op.bind("x", floats(x)),
                      .taps = made.op.bind("taps", floats(taps))};
  in.carried.states = made.op.bind("states", floats(states));
  in.carried.state = made.op.bind("state", prompt_state(s.items, s.tokens, kBeams));
  CausalConvAttrs attrs = c.attrs();
  attrs.beams = kBeams;
  VKF_ASSIGN(const TensorId id, add_causal_conv(made.op.graph, in, attrs));
  made.op.name_output(id, "y");
  VKF_ASSIGN(Array y, reference::causal_conv(x, taps, c.options()));
  for (int64_t item = 0; item < s.items; ++item) {
    const int64_t end = prompt_end(item, s.tokens);
    if (end == 0) continue;
    const int64_t line = item * kBeams * kLines + (end - 1) % kLines;
    for (int64_t k = 0; k + 1 < s.taps; ++k) {
      const int64_t t = end - (s.taps - 1) + k;
      for (int64_t i = 0; i < s.channels; ++i) {
        states[(line * (s.taps - 1) + k) * s.channels + i] =
            t < 0 ? 0.0 : conv_input(c, x, item * s.tokens + t, i);
      }
    }
  }
  made.expected.emplace("y", Expected{std::move(y), terms(16 + s.taps), 4});
  made.expected.emplace("states", Expected{std::move(states), terms(2), 1});
  return made;
}

Result<CheckCase> conv_step_case(const ConvCall& c, const StateSteps& steps) {
  const ConvSize& s = c.s;
  const Array taps = c.taps();
  CheckCase made = steps.start();
  CausalConvInputs in{.taps = made.op.bind("taps", floats(taps))};
  in.carried.states = made.op.graph.add_external(
      "states", DType::kF32, {steps.rows(), int64_t{steps.lines()}, s.taps - 1, s.channels});
  std::vector<Array> x;
  for (size_t step = 0; step < steps.count(); ++step) {
    x.push_back(random_array({steps.slots(), c.width()}, step + 1));
    in.x = made.op.bind("x" + std::to_string(step), floats(x.back()));
    VKF_ASSIGN(const StateSteps::Bound bound, steps.bind(made, step));
    in.carried.state = bound.state;
    in.carried.parents = bound.parents;
    VKF_ASSIGN(const TensorId y, add_causal_conv(made.op.graph, in, c.attrs()));
    made.op.name_output(y, "y" + std::to_string(step));
  }
  const int64_t out = s.gated ? s.channels : c.width();
  Array expected = reference::filled({steps.slots(), out}, kUntouched);
  for (size_t slot = 0; slot < steps.live(); ++slot) {
    VKF_ASSIGN(const Array y, reference::causal_conv(steps.seen(x, slot), taps, c.options()));
    std::copy_n(y.data.end() - out, out, expected.data.begin() + static_cast<int64_t>(slot) * out);
  }
  made.expected.emplace("y" + std::to_string(steps.count() - 1),
                        Expected{std::move(expected), terms(16 + s.taps), 4});
  return made;
}

Status conv_graph(StepGraph& in) {
  const int64_t tokens = in.number("tokens"), channels = in.number("channels");
  const CausalConvInputs inputs{.x = in.floats("x", {1, tokens, channels}),
                                .taps = in.floats("taps", {5, channels})};
  VKF_ASSIGN(
      const TensorId y,
      add_causal_conv(in.graph(), inputs, {.activation = ActivationKind::kSilu, .bias = true}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void causal_conv_cases(OperatorCases& cases) {
  for (const ConvSize& s : kConvSizes) {
    const ConvCall c{s};
    const std::string size = size_text({s.items, s.tokens, s.taps, s.channels});
    const bool quick = s.channels < 50;
    cases.check("full/" + size, quick, [=] { return conv_full_case(c, Content::kNormal, false); });
    cases.check("masked/" + size, quick, [=] { return conv_full_case(c, Content::kNormal, true); });
    if (s.taps == 1) continue;
    cases.check("prompt/" + size, quick, [=] { return conv_prompt_case(c); });
    for (const auto& [name, steps] : state_steps()) {
      cases.check("step-" + name + "/" + size, quick,
                  [c, steps] { return conv_step_case(c, steps); });
    }
  }
  for (const Content content : kOtherContents) {
    cases.check(content_name(content), true, [=] {
      return conv_full_case({{2, 5, 4, 7, false}}, content, false);
    });
  }
  cases.time_graph("mamba2-1.3b prefill 256", "tokens=256 channels=4352", conv_graph);
  cases.time_graph("lfm2-1.2b prefill 256", "tokens=256 channels=2048", conv_graph);
}

}  // namespace vkformer::conformance
