// The cases of select_rows: its checks, and what the benchmark times.
#include "ops/select_rows.h"

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "reference/select_rows.h"

namespace vkformer::conformance {
namespace {

struct Selection {
  const char* name;
  Shape x;  // (B, S, C)
  int64_t k;
};

// Around a workgroup's rows, and as many as there are.
const Selection kSelections[] = {{"one", {1, 1, 1}, 1},         {"two-of-two", {3, 2, 5}, 2},
                                 {"prime", {2, 31, 7}, 11},     {"group-less-1", {1, 127, 3}, 127},
                                 {"group", {2, 128, 1}, 17},    {"group-and-1", {1, 129, 33}, 64},
                                 {"rt-detr", {1, 525, 80}, 300}};

Result<CheckCase> select_case(const Selection& selection, Content content) {
  const Array x = with_ties(random_array(selection.x, 1, content));
  VKF_ASSIGN(Array y, reference::select_rows(x, selection.k));
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId to, add_select_rows(made.op.graph, from, {.k = u32(selection.k)}));
  made.op.name_output(to, "y");
  made.expected.emplace("y", Expected{std::move(y)});
  return made;
}

Status selection_graph(StepGraph& in) {
  const TensorId x = in.floats("x", {1, in.number("rows"), in.number("classes")});
  VKF_ASSIGN(const TensorId y, add_select_rows(in.graph(), x, {.k = u32(in.number("queries"))}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void select_rows_cases(OperatorCases& cases) {
  for (const Selection& selection : kSelections) {
    cases.check(std::string("normal/") + selection.name, selection.x[1] == 129,
                [=] { return select_case(selection, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    cases.check(content_name(content), true, [=] { return select_case(kSelections[2], content); });
  }
  cases.time_graph("rt-detr-r50 640", "rows=8400 classes=80 queries=300", selection_graph);
  cases.limited_by("every row is compared with every other one");
}

}  // namespace vkformer::conformance
