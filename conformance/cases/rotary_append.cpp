// The cases of rotary_append: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_cases.h"
#include "conformance/step_graph.h"
#include "ops/additive_attention.h"
#include "ops/rotary_append.h"
#include "params/decode_state.h"
#include "reference/rotary.h"

namespace vkformer::conformance {
namespace {

struct RotaryStep {
  int64_t heads, kv_heads, width, turned, lines;
  uint32_t position;
  RotaryPairs pairs = RotaryPairs::kHalves;
  std::vector<uint32_t> starts = {0, 0, 0};  // of live slots: how much shorter their prompts are
  int64_t value_width = 0;                   // 0: the keys'; -1: there are no values
};

Result<CheckCase> rotary_append_case(const RotaryStep& c) {
  const int64_t q = c.heads * c.width, keys = c.kv_heads * c.width;
  const int64_t values = c.value_width == 0 ? c.width : std::max<int64_t>(0, c.value_width);
  const int64_t kv = keys + c.kv_heads * values;
  const int64_t line = q + kv;
  const Array x = random_array({kSlots, line}, 1);
  const Array table = random_array({c.lines, c.turned}, 2);
  Array cache = random_array({kSlots, c.lines, kv}, 3);
  CheckCase made = step_case();
  RotaryAppendInputs in;
  in.x = made.op.bind("x", floats(x));
  in.table = made.op.bind("table", floats(table));
  std::vector<uint32_t> entries = kLiveRows;
  Array places = reference::filled({kSlots}, c.position);
  for (size_t slot = 0; slot < entries.size(); ++slot) {
    entries[slot] |= c.starts[slot] << VKF_SLOT_ROW_BITS;
    places.data[slot] -= c.starts[slot];
  }
  in.state = made.op.bind("state", state_of(c.position, entries));
  in.cache = made.op.bind("cache", floats(cache));
  RotaryAppendAttrs attrs;
  attrs.heads = u32(c.heads);
  attrs.kv_heads = u32(c.kv_heads);
  attrs.head_width = u32(c.width);
  if (c.value_width < 0) attrs.has_values = RotaryAppendAttrs::Values::kNo;
  attrs.value_width = u32(std::max<int64_t>(0, c.value_width));
  attrs.rotary_width = u32(c.turned);
  attrs.pairs = c.pairs;
  VKF_ASSIGN(const TensorId y, add_rotary_append(made.op.graph, in, attrs));
  made.op.name_output(y, "y");
  reference::RotaryOptions options{.heads = c.heads + c.kv_heads, .head_width = c.width};
  if (c.pairs == RotaryPairs::kInterleaved) {
    options.pairing = reference::RotaryPairing::kInterleaved;
  }
  VKF_ASSIGN(const Array turned, reference::rotary(x, table, places, options));
  Array queries = reference::filled({kSlots, q}, kUntouched);
  for (size_t slot = 0; slot < kLiveRows.size(); ++slot) {
    const auto from = turned.data.begin() + static_cast<int64_t>(slot) * line;
    std::copy_n(from, q, queries.data.begin() + static_cast<int64_t>(slot) * q);
    std::copy_n(from + q, kv,
                cache.data.begin() +
                    (kLiveRows[slot] * c.lines + static_cast<int64_t>(places.data[slot])) * kv);
  }
  made.expected.emplace("y", Expected{std::move(queries), terms(2), 4});
  made.expected.emplace("cache", Expected{std::move(cache), terms(2), 4});
  return made;
}

Status rotary_append_graph(StepGraph& in) {
  const int64_t slots = in.number("slots"), lines = in.number("lines");
  const int64_t heads = in.number("heads"), width = in.number("width");
  RotaryAppendInputs inputs;
  inputs.state = in.state(slots, slots, lines - 1);
  inputs.x = in.floats("x", {slots, 3 * heads * width});
  inputs.table = in.floats("table", {lines, width});
  inputs.cache = in.floats("cache", {slots, lines, 2 * heads * width});
  RotaryAppendAttrs attrs;
  attrs.heads = attrs.kv_heads = u32(heads);
  attrs.head_width = attrs.rotary_width = u32(width);
  VKF_ASSIGN(const TensorId y, add_rotary_append(in.graph(), inputs, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void rotary_append_cases(OperatorCases& cases) {
  for (const RotaryStep& c :
       {RotaryStep{1, 1, 2, 2, 1, 0}, RotaryStep{3, 1, 32, 16, 20, 19},
        RotaryStep{4, 2, 66, 66, 70, 33}, RotaryStep{2, 2, 128, 128, 129, 128}}) {
    cases.check(
        size_text({c.heads, c.kv_heads, c.width, c.turned}) + "-at-" + std::to_string(c.position),
        c.lines == 20, [=] { return rotary_append_case(c); });
  }
  const std::vector<uint32_t> starts = {0, 4, 13};
  for (const int64_t value_width : {1, 7, 24, 130}) {
    const RotaryStep c{4, 2, 24, 8, 64, 13, RotaryPairs::kInterleaved, starts, value_width};
    cases.check("values/" + std::to_string(value_width), value_width == 7,
                [=] { return rotary_append_case(c); });
  }
  // Lines of latents (multi-head latent attention).
  for (const int64_t width : {14, 33, 576}) {
    const RotaryStep c{width < 100 ? 3 : 16,      1,      width, 8, 64, 13,
                       RotaryPairs::kInterleaved, starts, -1};
    cases.check("no-values/" + std::to_string(width), width == 14,
                [=] { return rotary_append_case(c); });
  }
  for (const auto pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    const std::string name = pairs == RotaryPairs::kHalves ? "halves/" : "interleaved/";
    for (const int64_t width : {2, 7, 31, 32, 33, 64, 80, 128, 256}) {
      for (const int64_t turned : {int64_t{2}, width / 2 * 2}) {
        const RotaryStep c{4, 2, width, turned, 64, 13, pairs, starts};
        cases.test(name + size_text({4, 2, width, turned}), [=] { return rotary_append_case(c); });
        if (width / 2 * 2 == 2) break;  // the same
      }
    }
  }
  for (const auto& [heads, width] : {std::pair{int64_t{1}, int64_t{2}}, {12, 64}}) {
    const RotaryStep c{heads, heads, width, width, 64, 13, RotaryPairs::kHalves, starts};
    cases.test("heads/" + size_text({heads, heads, width, width}),
               [=] { return rotary_append_case(c); });
  }
  cases.time_graph("llama-134m decode", "slots=1 lines=1024 heads=12 width=64",
                   rotary_append_graph);
  cases.limited_by("a small copy: the dispatch itself is the cost");
}

}  // namespace vkformer::conformance
