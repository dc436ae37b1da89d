// The cases of group_norm: its checks, and what the benchmark times.
#include "reference/group_norm.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> group_norm_case(const Shape& shape, int64_t groups, Content content) {
  const Array x = random_array(shape, 5, content);
  const Array gain = random_array({shape[1]}, 2), bias = random_array({shape[1]}, 3);
  VKF_ASSIGN(Array y, reference::group_norm(x, gain, bias, {.groups = groups}));
  return call_case({"group_norm",
                    R"({"groups": )" + std::to_string(groups) + "}",
                    {{"X", floats(x)}, {"weight", floats(gain)}, {"bias", floats(bias)}}},
                   {{"Y", {std::move(y), terms(shape[1] / groups * shape[2]), 4}}});
}

}  // namespace

void group_norm_cases(OperatorCases& cases) {
  for (const Content content : kAllContents) {
    for (const Shape& shape :
         {Shape{1, 2, 1}, Shape{2, 6, 33}, Shape{1, 12, 129}, Shape{3, 4, 1500}}) {
      cases.check(std::string(content_name(content)) + "/" + size_text(shape), shape[2] == 33,
                  [=] { return group_norm_case(shape, 2, content); });
    }
  }
  cases.time("wav2vec2 1 s", {"group_norm", R"({"groups": 512})"},
             "X=1,512,3199 weight=512 bias=512");
  cases.limited_by("three passes over a row: mean, variance, result");
}

}  // namespace vkformer::conformance
