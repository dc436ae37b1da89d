// The cases of combine: its checks, and what the benchmark times.
#include "reference/combine.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> combine_case(const Shape& shape, Content content) {
  const Array a = random_array(shape, 1, content), b = random_array(shape, 2, content);
  VKF_ASSIGN(Array y, reference::combine(a, 0.75, b, -1.5));
  return call_case(
      {"combine", R"({"alpha": 0.75, "beta": -1.5})", {{"A", floats(a)}, {"B", floats(b)}}},
      {{"Y", {std::move(y), terms(2), magnitude_of(a)}}});
}

Result<CheckCase> limited_case(const Shape& shape, Content content) {
  const Array a = random_array(shape, 1, content), b = random_array(shape, 2, content);
  VKF_ASSIGN(Array y, reference::combine(a, 1.0, b, 1.0, 0.5));
  return call_case({"combine", R"({"most": 0.5})", {{"A", floats(a)}, {"B", floats(b)}}},
                   {{"Y", {std::move(y), terms(2), magnitude_of(a)}}});
}

}  // namespace

void combine_cases(OperatorCases& cases) {
  for (const RowSize& size : move_sizes()) {
    cases.check("normal/" + size.name, size.quick,
                [=] { return combine_case(size.shape, Content::kNormal); });
  }
  for (const Content content : kOtherContents) {
    cases.check(std::string(content_name(content)) + "/5x129", true, [=] {
      return combine_case({5, 129}, content);
    });
    cases.check(std::string("limited-") + content_name(content) + "/5x129", true, [=] {
      return limited_case({5, 129}, content);
    });
  }
  cases.time("bert-base 1x128", {"combine", "{}"}, "A=128,768 B=128,768");
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
