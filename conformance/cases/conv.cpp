// The cases of conv: its checks, and what the benchmark times.
#include "conformance/cases.h"
#include "conformance/conv_cases.h"

namespace vkformer::conformance {

void conv_cases(OperatorCases& cases) {
  const Window windows[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, 1, 0, 1},   {{2, 6, 9, 7}, {6, 1, 3, 3}, 1, 1, 6},
      {{1, 8, 5, 33}, {12, 4, 3, 2}, 2, 1, 2}, {{1, 64, 14, 14}, {64, 1, 3, 3}, 2, 1, 64},
      {{1, 3, 31, 17}, {6, 1, 5, 5}, 3, 2, 3}, {{1, 4, 1, 1500}, {4, 2, 1, 31}, 1, 15, 2}};
  for (const Window& c : windows) {
    for (const Content content : {Content::kNormal, Content::kWide, Content::kSpecial}) {
      cases.check(content_name(content) + ("/" + size_text(c.x) + "-" + size_text(c.w)),
                  c.x[3] == 7 || c.x[3] == 33, [=] { return conv_case(c, content); });
    }
  }
  cases.time("conformer depthwise", {"conv1d", R"({"groups": 512, "padding": 15})"},
             "X=1,512,499 W=512,1,31");
  cases.time("cvt-13 stage 1", {"conv2d", R"({"groups": 64, "padding": 1})"},
             "X=1,64,56,56 W=64,1,3,3");
  cases.limited_by("a weight is used for four outputs, and each of them loads its element");
}

}  // namespace vkformer::conformance
