// The cases of unfold: its checks, and what the benchmark times.
#include "conformance/cases.h"
#include "conformance/conv_cases.h"

namespace vkformer::conformance {

void unfold_cases(OperatorCases& cases) {
  const Window windows[] = {{{1, 1, 3, 3}, {2, 1, 2, 2}, 1, square_window(1, 0)},
                            {{2, 3, 16, 16}, {9, 3, 4, 4}, 1, square_window(4, 0)},
                            {{1, 5, 11, 13}, {65, 5, 3, 3}, 1, square_window(2, 1)},
                            {{1, 80, 1, 200}, {33, 80, 1, 3}, 1, square_window(1, 0)}};
  for (const Window& c : windows) {
    cases.check("normal/" + window_text(c), c.x[2] == 16,
                [=] { return conv_case(c, Content::kNormal); });
  }
  cases.time("vit-b32-384 patches", {"conv2d", R"({"stride": 32})"}, "X=1,3,384,384 W=768,3,32,32");
  cases.time("whisper-tiny 30 s", {"conv1d", R"({"padding": 1})"}, "X=1,80,3000 W=384,80,3");
  cases.limited_by("single elements, each found by its place in the picture");
}

}  // namespace vkformer::conformance
