// The cases of argmax: its checks, and what the benchmark times.
#include <cmath>

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/argmax.h"

namespace vkformer::conformance {
namespace {

// Ties everywhere: 16 values only.
Array with_ties(const Shape& shape, uint64_t seed, Content content) {
  Array x = random_array(shape, seed, content);
  for (double& value : x.data) {
    if (std::abs(value) < 4) value = std::round(value * 2) / 2;
  }
  return x;
}

Result<CheckCase> argmax_case(const Shape& shape, Content content) {
  const Array x = with_ties(shape, 5, content);
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
