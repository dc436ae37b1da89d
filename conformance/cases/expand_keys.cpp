// The cases of expand_keys: its checks, and what the benchmark times.
#include "ops/expand_keys.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"

namespace vkformer::conformance {
namespace {

struct Widths {
  int64_t rows, heads, shared, own, values;
  int64_t beyond = 0;  // columns after those that are shared
};

constexpr Widths kWidths[] = {{1, 1, 1, 1, 1},    {3, 2, 4, 8, 10},   {5, 3, 8, 6, 7},
                              {7, 1, 33, 31, 65}, {2, 5, 16, 0, 129}, {33, 16, 64, 128, 128},
                              {5, 2, 4, 9, 7, 3}};

Result<CheckCase> keys_case(const Widths& w, Content content, bool step) {
  const int64_t width = w.shared + w.own, q_width = w.heads * width;
  const Array q = random_array({w.rows, q_width}, 1, content);
  const Array shared = random_array({w.rows, w.shared + w.beyond}, 2, content);
  const Array kv = random_array({w.rows, w.heads * (w.own + w.values)}, 3, content);
  Array y = reference::filled({w.rows, 2 * q_width + w.heads * w.values}, 0);
  for (int64_t row = 0; row < w.rows; ++row) {
    int64_t to = row * y.dim(1);
    for (int64_t i = 0; i < q_width; ++i) y[to++] = q[row * q_width + i];
    for (int64_t h = 0; h < w.heads; ++h) {
      for (int64_t i = 0; i < w.shared; ++i) y[to++] = shared[row * shared.dim(1) + i];
      for (int64_t i = 0; i < w.own; ++i) y[to++] = kv[row * kv.dim(1) + h * w.own + i];
    }
    for (int64_t i = w.heads * w.own; i < kv.dim(1); ++i) y[to++] = kv[row * kv.dim(1) + i];
  }
  CheckCase made;
  if (step) {
    made.op.graph.set_step(u32(w.rows));
    made.live_slots = u32(w.rows);
  }
  const ExpandKeysInputs in{made.op.bind("q", floats(q)), made.op.bind("shared", floats(shared)),
                            made.op.bind("kv", floats(kv))};
  VKF_ASSIGN(const TensorId id,
             add_expand_keys(made.op.graph, in, {u32(w.heads), u32(w.values), u32(w.shared)}));
  made.op.name_output(id, "y");
  made.expected.emplace("y", Expected{std::move(y)});
  return made;
}

Status keys_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), heads = in.number("heads");
  const ExpandKeysInputs inputs{in.floats("q", {rows, heads * 192}),
                                in.floats("shared", {rows, 64}),
                                in.floats("kv", {rows, heads * 256})};
  VKF_ASSIGN(const TensorId y, add_expand_keys(in.graph(), inputs, {u32(heads), 128}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void expand_keys_cases(OperatorCases& cases) {
  for (const Widths& w : kWidths) {
    std::string size = size_text({w.rows, w.heads, w.shared, w.own, w.values});
    if (w.beyond > 0) size += "-line";
    for (const Content content : kAllContents) {
      cases.check(std::string(content_name(content)) + "/" + size, w.rows == 5,
                  [=] { return keys_case(w, content, false); });
    }
    cases.check("step/" + size, w.rows == 3, [=] { return keys_case(w, Content::kNormal, true); });
  }
  cases.time_graph("deepseek-v3 512", "rows=512 heads=128", keys_graph);
}

}  // namespace vkformer::conformance
