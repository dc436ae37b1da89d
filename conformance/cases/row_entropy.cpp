// The cases of row_entropy: its checks, and what the benchmark times.
#include <cmath>

#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/softmax.h"

namespace vkformer::conformance {
namespace {

// Probabilities of every row.
Result<CheckCase> entropy_case(const Shape& shape) {
  VKF_ASSIGN(const Array p, reference::softmax(random_array(shape, 9)));
  const Array x = reference::round_to_f32(p);
  Array y = reference::filled({shape[0], shape[1], shape[2]}, 0.0);
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) y[i / shape[3]] -= x[i] * std::log(x[i]);
  }
  return call_case({"row_entropy", "{}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(shape[3])}}});
}

}  // namespace

void row_entropy_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    if (size.content == Content::kSpecial || size.content == Content::kWide) continue;
    cases.check(size.name + size_text(size.scores), size.quick,
                [=] { return entropy_case(size.scores); });
  }
  cases.time("bert-base 1x128", {"row_entropy", "{}"}, "X:positive=1,12,128,128");
  cases.limited_by("a logarithm for each element");
}

}  // namespace vkformer::conformance
