// The cases of gather_rows: its checks, and what the benchmark times.
#include "reference/gather_rows.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

// Indices that are no rows give zeros.
Result<CheckCase> gather_case(const Shape& shape, bool added, Content content) {
  const Array x = random_array(shape, 1, content);
  const Array indices = random_ids({2 * shape[0] + 2}, 3, shape[0] + shape[0] / 4 + 1);
  const Array addend = random_array({2, shape[1]}, 4);
  TensorMap inputs{{"X", floats(x)}, {"indices", integers(indices)}};
  if (added) inputs.emplace("addend", floats(addend));
  VKF_ASSIGN(Array y, reference::gather_rows(x, indices, added ? &addend : nullptr));
  return call_case({"gather_rows", "{}", std::move(inputs)},
                   {{"Y", {std::move(y), added ? terms(1) : Tolerance{}, magnitude_of(x)}}});
}

}  // namespace

void gather_rows_cases(OperatorCases& cases) {
  for (const RowSize& size : move_sizes()) {
    for (const bool added : {false, true}) {
      cases.check((added ? "addend/" : "plain/") + size.name, size.quick,
                  [=] { return gather_case(size.shape, added, Content::kNormal); });
    }
  }
  for (const Content content : kOtherContents) {
    cases.check(std::string(content_name(content)) + "/5x129", true, [=] {
      return gather_case({5, 129}, false, content);
    });
  }
  cases.time("swin-t stage 1", {"gather_rows", "{}"}, "X=3136,96 indices:below3136=3136");
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
