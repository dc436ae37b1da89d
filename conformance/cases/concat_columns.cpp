// The cases of concat_columns: its checks, and what the benchmark times.
#include "reference/concat_columns.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> concat_case(const Shape& shape, Content content) {
  const Array a = random_array(shape, 1, content);
  const Array b = random_array({shape[0], shape[1] + 3}, 2, content);
  VKF_ASSIGN(Array y, reference::concat_columns(a, b));
  return call_case({"concat_columns", "{}", {{"A", floats(a)}, {"B", floats(b)}}},
                   {{"Y", {std::move(y)}}});
}

}  // namespace

void concat_columns_cases(OperatorCases& cases) {
  for (const RowSize& size : move_sizes()) {
    cases.check("normal/" + size.name, size.quick,
                [=] { return concat_case(size.shape, Content::kNormal); });
  }
  for (const Content content : kOtherContents) {
    cases.check(std::string(content_name(content)) + "/5x129", true, [=] {
      return concat_case({5, 129}, content);
    });
  }
  cases.time("rnnsearch 8x50", {"concat_columns", "{}"}, "A=400,1000 B=400,1000");
}

}  // namespace vkformer::conformance
