// The cases of state_scan: its checks, and what the benchmark times.
#include "ops/state_scan.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/state_steps.h"
#include "conformance/step_graph.h"
#include "reference/state_scan.h"

namespace vkformer::conformance {
namespace {

struct ScanSize {
  int64_t items, tokens, heads, key_heads, width, value_width;
};

constexpr ScanSize kScanSizes[] = {{1, 1, 1, 1, 1, 1},     {2, 5, 2, 1, 4, 3},
                                   {2, 19, 4, 2, 16, 8},   {3, 33, 3, 3, 33, 17},
                                   {1, 40, 4, 2, 128, 64}, {1, 17, 2, 1, 256, 65}};

struct ScanCall {
  ScanSize s;
  bool delta;

  // Rows: [q | k | v | a | b], then one more column.
  int64_t k() const { return s.key_heads * s.width; }
  int64_t v() const { return 2 * k(); }
  int64_t a() const { return v() + s.heads * s.value_width; }
  int64_t width() const { return a() + 2 * s.heads + 1; }

  StateScanAttrs attrs() const {
    StateScanAttrs t;
    t.rule = delta ? StateScanAttrs::Rule::kDelta : StateScanAttrs::Rule::kSelective;
    t.heads = u32(s.heads);
    t.key_heads = u32(s.key_heads);
    t.width = u32(s.width);
    t.value_width = u32(s.value_width);
    t.k_offset = u32(k());
    t.v_offset = u32(v());
    t.a_offset = u32(a());
    t.b_offset = u32(a() + s.heads);
    if (delta) {
      t.q_scale = 0.25f;
      t.norm_epsilon = 1e-6f;
    } else {
      t.least_rate = 0.25f;
      t.most_rate = 1.5f;
    }
    return t;
  }
  reference::StateScanOptions options() const {
    const StateScanAttrs t = attrs();
    return {.delta = delta,
            .heads = s.heads,
            .key_heads = s.key_heads,
            .width = s.width,
            .value_width = s.value_width,
            .q_offset = 0,
            .k_offset = k(),
            .v_offset = v(),
            .a_offset = a(),
            .b_offset = a() + s.heads,
            .q_scale = t.q_scale,
            .norm_epsilon = t.norm_epsilon,
            .least_rate = t.least_rate,
            .most_rate = t.most_rate};
  }
  Array rates() const { return scaled(random_array({delta ? 2 : 3, s.heads}, 9), 0.5); }
  Tolerance bound() const { return terms(16 * (s.width + s.tokens)); }
};

Result<CheckCase> scan_full_case(const ScanCall& c, Content content) {
  const Array x = random_array({c.s.items, c.s.tokens, c.width()}, 1, content);
  const Array rates = c.rates();
  VKF_ASSIGN(Array y, reference::state_scan(x, rates, c.options()));
  CheckCase made;
  const StateScanInputs in{.x = made.op.bind("x", floats(x)),
                           .rates = made.op.bind("rates", floats(rates))};
  VKF_ASSIGN(const TensorId id, add_state_scan(made.op.graph, in, c.attrs()));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y), c.bound(), 8});
  return made;
}

// The state that a prompt leaves: y of a token with nothing to add and a unit vector for a query.
Result<Array> state_after(const ScanCall& c, const Array& x, const Array& rates) {
  const ScanSize& s = c.s;
  Array states = reference::filled({s.heads, s.width, s.value_width}, 0.0);
  for (int64_t e = 0; e < s.width; ++e) {
    // q of the last token becomes a unit vector; nothing else of it enters y but skip v.
    Array probe = x;
    const int64_t at = (x.dim(1) - 1) * c.width();
    for (int64_t h = 0; h < s.key_heads; ++h) {
      for (int64_t i = 0; i < s.width; ++i) probe[at + h * s.width + i] = i == e ? 1.0 : 0.0;
    }
    Array plain = rates;
    for (int64_t h = 0; !c.delta && h < s.heads; ++h) plain[2 * s.heads + h] = 0.0;
    reference::StateScanOptions options = c.options();
    VKF_ASSIGN(const Array y, reference::state_scan(probe, plain, options));
    const double scale = options.q_scale / (c.delta ? std::sqrt(1.0 + options.norm_epsilon) : 1.0);
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t j = 0; j < s.value_width; ++j) {
        states[(h * s.width + e) * s.value_width + j] =
            y[(x.dim(1) - 1) * y.dim(2) + h * s.value_width + j] / scale;
      }
    }
  }
  return states;
}

// Prompts of one token less each than the one before, of two rows an item.
Result<CheckCase> scan_prompt_case(const ScanCall& c) {
  const ScanSize& s = c.s;
  constexpr int64_t kBeams = 2, kLines = 3;
  const Array x = random_array({s.items, s.tokens, c.width()}, 1), rates = c.rates();
  Array states = random_array({s.items * kBeams, kLines, s.heads, s.width, s.value_width}, 5);
  Array y = reference::filled({s.items, s.tokens, s.heads * s.value_width}, kUntouched);
  CheckCase made;
  StateScanInputs in{.x = made.op.bind("x", floats(x)),
                     .rates = made.op.bind("rates", floats(rates))};
  in.carried.states = made.op.bind("states", floats(states));
  for (int64_t item = 0; item < s.items; ++item) {
    const int64_t end = prompt_end(item, s.tokens);
    if (end == 0) continue;
    Array own = reference::filled({1, end, c.width()}, 0.0);
    std::copy_n(x.data.begin() + item * s.tokens * c.width(), own.size(), own.data.begin());
    VKF_ASSIGN(const Array given, reference::state_scan(own, rates, c.options()));
    std::copy_n(given.data.begin(), given.size(), y.data.begin() + item * s.tokens * y.dim(2));
    VKF_ASSIGN(const Array left, state_after(c, own, rates));
    const int64_t line = item * kBeams * kLines + (end - 1) % kLines;
    std::copy_n(left.data.begin(), left.size(), states.data.begin() + line * left.size());
  }
  in.carried.state = made.op.bind("state", prompt_state(s.items, s.tokens, kBeams));
  StateScanAttrs attrs = c.attrs();
  attrs.beams = kBeams;
  VKF_ASSIGN(const TensorId id, add_state_scan(made.op.graph, in, attrs));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y), c.bound(), 8});
  made.expected.emplace("states", Expected{std::move(states), c.bound(), 8});
  return made;
}

Result<CheckCase> scan_step_case(const ScanCall& c, const StateSteps& steps) {
  const ScanSize& s = c.s;
  const Array rates = c.rates();
  CheckCase made = steps.start();
  StateScanInputs in{.rates = made.op.bind("rates", floats(rates))};
  in.carried.states = made.op.graph.add_external(
      "states", DType::kF32,
      {steps.rows(), int64_t{steps.lines()}, s.heads, s.width, s.value_width});
  std::vector<Array> x;
  StateScanAttrs attrs = c.attrs();
  attrs.run = u32(steps.slots());
  for (size_t step = 0; step < steps.count(); ++step) {
    x.push_back(random_array({steps.slots(), c.width()}, step + 1));
    in.x = made.op.bind("x" + std::to_string(step), floats(x.back()));
    VKF_ASSIGN(const StateSteps::Bound bound, steps.bind(made, step));
    in.carried.state = bound.state;
    in.carried.parents = bound.parents;
    VKF_ASSIGN(const TensorId y, add_state_scan(made.op.graph, in, attrs));
    made.op.name_output(y, "y" + std::to_string(step));
  }
  const int64_t out = s.heads * s.value_width;
  Array expected = reference::filled({steps.slots(), out}, kUntouched);
  for (size_t slot = 0; slot < steps.live(); ++slot) {
    VKF_ASSIGN(const Array y, reference::state_scan(steps.seen(x, slot), rates, c.options()));
    std::copy_n(y.data.end() - out, out, expected.data.begin() + static_cast<int64_t>(slot) * out);
  }
  made.expected.emplace("y" + std::to_string(steps.count() - 1),
                        Expected{std::move(expected), c.bound(), 8});
  return made;
}

Status scan_graph(StepGraph& in) {
  const int64_t tokens = in.number("tokens"), heads = in.number("heads");
  const int64_t e = in.number("width"), ev = in.number("values");
  StateScanAttrs a;
  a.rule =
      in.number("delta", 0) == 1 ? StateScanAttrs::Rule::kDelta : StateScanAttrs::Rule::kSelective;
  a.heads = u32(heads);
  a.key_heads = u32(in.number("key_heads"));
  a.width = u32(e);
  a.value_width = u32(ev);
  a.k_offset = u32(a.key_heads * e);
  a.v_offset = 2 * a.k_offset;
  a.a_offset = u32(a.v_offset + heads * ev);
  a.b_offset = u32(a.a_offset + heads);
  const StateScanInputs inputs{
      .x = in.floats("x", {1, tokens, a.b_offset + heads}),
      .rates = in.floats("rates", {a.rule == StateScanAttrs::Rule::kDelta ? 2 : 3, heads})};
  VKF_ASSIGN(const TensorId y, add_state_scan(in.graph(), inputs, a));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void state_scan_cases(OperatorCases& cases) {
  for (const bool delta : {false, true}) {
    const std::string rule = delta ? "delta/" : "selective/";
    for (const ScanSize& s : kScanSizes) {
      const ScanCall c{s, delta};
      const std::string size =
          size_text({s.items, s.tokens, s.heads, s.key_heads, s.width, s.value_width});
      const bool quick = s.width < 40;
      cases.check(rule + "full/" + size, quick || s.width == 128,
                  [=] { return scan_full_case(c, Content::kNormal); });
      cases.check(rule + "prompt/" + size, quick, [=] { return scan_prompt_case(c); });
      for (const auto& [name, steps] : state_steps()) {
        cases.check(rule + "step-" + name + "/" + size, quick,
                    [c, steps] { return scan_step_case(c, steps); });
      }
    }
    // Longer than one dispatch of a software device.
    cases.test(rule + "full/1x1500x1x1x32x3", [=] {
      return scan_full_case({{1, 1500, 1, 1, 32, 3}, delta}, Content::kNormal);
    });
    cases.check(rule + "special", true, [=] {
      return scan_full_case({{2, 5, 2, 1, 4, 3}, delta}, Content::kSpecial);
    });
  }
  cases.time_graph("mamba2-1.3b prefill 256", "tokens=256 heads=64 key_heads=1 width=128 values=64",
                   scan_graph);
  cases.time_graph("qwen3-next prefill 256",
                   "tokens=256 heads=32 key_heads=16 width=128 values=128 delta=1", scan_graph);
  cases.limited_by("one token after the other");
}

}  // namespace vkformer::conformance
