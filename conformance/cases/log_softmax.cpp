// The cases of log_softmax: its checks, and what the benchmark times.
#include "reference/log_softmax.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> log_softmax_case(const Shape& shape, Content content) {
  const Array x = random_array(shape, 1, content);
  VKF_ASSIGN(Array y, reference::log_softmax(x));
  return call_case({"log_softmax", "{}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(shape.back())}}});
}

}  // namespace

void log_softmax_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    cases.check(size.name + size_text(size.rows), size.quick,
                [=] { return log_softmax_case(size.rows, size.content); });
  }
  cases.check("gpt2/2x50257", false, [] { return log_softmax_case({2, 50257}, Content::kNormal); });
  cases.time("marian 6 beams", {"log_softmax", "{}"}, "X=6,59514");
  cases.limited_by("three passes over a row, one with an exponential");
}

}  // namespace vkformer::conformance
