// The cases of mix_rounds: its checks, and what the benchmark times.
#include "ops/mix_rounds.h"
#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/head_cases.h"
#include "conformance/step_graph.h"
#include "reference/mix_rounds.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> mix_case(const Shape& shape) {
  Array x = random_array(shape, 5);
  for (int64_t i = shape[4] - 1; i < x.size(); i += shape[4]) x[i] = 1 + x[i] * x[i];
  x = reference::round_to_f32(std::move(x));
  VKF_ASSIGN(Array y, reference::mix_rounds(x));
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId to, add_mix_rounds(made.op.graph, from));
  made.op.name_output(to, "y");
  y.shape = made.op.graph.tensor(to).shape;
  made.expected.emplace("y", Expected{std::move(y), terms(4 * shape[2]), 4});
  return made;
}

Status mix_rounds_graph(StepGraph& in) {
  const TensorId x = in.floats("x", {1, in.number("heads"), in.number("rounds"),
                                     in.number("tokens"), in.number("width") + 2});
  VKF_ASSIGN(const TensorId y, add_mix_rounds(in.graph(), x));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void mix_rounds_cases(OperatorCases& cases) {
  for (const Shape& shape : kTokenShapes) {
    const Shape units{shape[0], shape[1], 2, shape[2]};
    cases.check("plain/" + size_text(units) + "x" + std::to_string(shape[3] + 2), shape[2] == 33,
                [=] {
                  return mix_case({units[0], units[1], 3, units[3], shape[3] + 2});
                });
  }
  cases.time_graph("reformer 4096", "heads=2 tokens=4096 width=64 rounds=2", mix_rounds_graph);
  cases.limited_by("an exponential for each round of every element");
}

}  // namespace vkformer::conformance
