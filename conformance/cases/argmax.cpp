// The cases of argmax: its checks, and what the benchmark times.
#include "reference/argmax.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> argmax_case(const Shape& shape, Content content) {
  const Array x = with_ties(random_array(shape, 5, content));
  VKF_ASSIGN(Array y, reference::argmax(x));
  return call_case({"argmax", "{}", {{"X", floats(x)}}}, {{"Y", {std::move(y)}}});
}

}  // namespace

void argmax_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    cases.check(size.name + size_text(size.rows), size.quick,
                [=] { return argmax_case(size.rows, size.content); });
  }
  cases.time("gpt2 decode", {"argmax", "{}"}, "X=1,50257");
  cases.time("marian 6 beams", {"argmax", "{}"}, "X=6,59514");
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
