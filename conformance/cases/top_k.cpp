// The cases of top_k: its checks, and what the benchmark times.
#include "reference/top_k.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> top_k_case(const Shape& shape, int64_t k, Content content) {
  const Array x = with_ties(random_array(shape, 6, content));
  VKF_ASSIGN(reference::TopK y, reference::top_k(x, k));
  return call_case({"top_k", R"({"k": )" + std::to_string(k) + "}", {{"X", floats(x)}}},
                   {{"values", {std::move(y.values)}}, {"indices", {std::move(y.indices)}}});
}

}  // namespace

void top_k_cases(OperatorCases& cases) {
  for (const ScoreSize& size : score_sizes()) {
    for (const int64_t k : {int64_t{1}, int64_t{5}, int64_t{64}}) {
      if (k > size.rows.back()) continue;
      cases.check("k" + std::to_string(k) + "/" + size.name + size_text(size.rows),
                  size.quick && k == 5, [=] { return top_k_case(size.rows, k, size.content); });
    }
  }
  cases.time("marian 6 beams", {"top_k", R"({"k": 12})"}, "X=6,59514");
  cases.limited_by("the best of a row are kept in order while it is read");
}

}  // namespace vkformer::conformance
