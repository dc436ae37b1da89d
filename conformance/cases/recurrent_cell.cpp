// The cases of recurrent_cell: its checks, and what the benchmark times.
#include "ops/recurrent_cell.h"
#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/recurrence.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> cell_case(int64_t rows, int64_t width, bool lstm) {
  const int64_t gates = (lstm ? 4 : 3) * width;
  const Array in = random_array({rows, gates}, 1), states = random_array({rows, gates}, 2);
  const Array carry = random_array({rows, width}, 3);
  VKF_ASSIGN(const Array y,
             reference::recurrent_cell(
                 in, states, carry, lstm ? reference::CellKind::kLstm : reference::CellKind::kGru));
  CheckCase made;
  const RecurrentCellInputs inputs{.gates = made.op.bind("gates", floats(in)),
                                   .states = made.op.bind("states", floats(states)),
                                   .carry = made.op.bind("carry", floats(carry))};
  VKF_ASSIGN(
      const TensorId id,
      add_recurrent_cell(made.op.graph, inputs, {.cell = lstm ? CellKind::kLstm : CellKind::kGru}));
  made.op.name_output(id, "h");
  Array h = reference::filled(made.op.graph.tensor(id).shape, 0.0), after = carry;
  for (int64_t i = 0; i < h.size(); ++i) {
    h[i] = y[i / width * 2 * width + i % width];
    after[i] = y[i / width * 2 * width + width + i % width];
  }
  made.expected.emplace("h", Expected{std::move(h), terms(64)});
  made.expected.emplace("carry", Expected{std::move(after), terms(64)});
  return made;
}

Status recurrent_cell_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), width = in.number("width");
  const RecurrentCellInputs inputs{.gates = in.floats("gates", {rows, 3 * width}),
                                   .states = in.floats("states", {rows, 3 * width}),
                                   .carry = in.floats("carry", {rows, width})};
  VKF_ASSIGN(const TensorId y, add_recurrent_cell(in.graph(), inputs, {}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void recurrent_cell_cases(OperatorCases& cases) {
  for (const Shape& s : {Shape{1, 1}, Shape{2, 8}, Shape{3, 31}, Shape{1, 33}, Shape{9, 64},
                         Shape{2, 129}, Shape{1, 16}}) {
    for (const bool lstm : {false, true}) {
      cases.check((lstm ? "lstm/" : "gru/") + size_text(s), s[1] == 31,
                  [=] { return cell_case(s[0], s[1], lstm); });
    }
  }
  cases.time_graph("rnnsearch 8 rows", "rows=8 width=1000", recurrent_cell_graph);
  cases.limited_by("a small copy: the dispatch itself is the cost");
}

}  // namespace vkformer::conformance
