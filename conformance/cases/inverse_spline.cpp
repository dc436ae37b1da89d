// The cases of inverse_spline: its checks, and what the benchmark times.
#include "reference/inverse_spline.h"

#include "base/check.h"
#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

struct SplineSize {
  const char* name;
  Shape x;
  int64_t bins;
  double bound;
};

const SplineSize kSplines[] = {{"one", {1}, 1, 1.0},      {"pair", {1, 2}, 2, 0.5},
                               {"prime", {3, 7}, 5, 5.0}, {"group", {64}, 10, 5.0},
                               {"more", {65}, 10, 5.0},   {"speech", {2, 131}, 10, 5.0},
                               {"many", {257}, 33, 3.0}};

Result<CheckCase> spline_case(const SplineSize& size, Content content) {
  Array x = random_array(size.x, 1, content);
  Shape shape = size.x;
  shape.push_back(3 * size.bins - 1);
  const Array params = random_array(shape, 2);
  VKF_ASSIGN(Array y, reference::inverse_spline(x, params, size.bins, size.bound));
  const std::string attributes = R"({"bins": )" + std::to_string(size.bins) + R"(, "bound": )" +
                                 std::to_string(size.bound) + "}";
  // The root of a quadratic equation loses digits where its terms cancel.
  return call_case({"inverse_spline", attributes, {{"X", floats(x)}, {"params", floats(params)}}},
                   {{"Y", {std::move(y), terms(4 * size.bins), magnitude_of(x)}}});
}

}  // namespace

void inverse_spline_cases(OperatorCases& cases) {
  for (const SplineSize& size : kSplines) {
    cases.check(std::string("normal/") + size.name, size.x[0] <= 3,
                [=] { return spline_case(size, Content::kNormal); });
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    cases.check(content_name(content), true, [=] { return spline_case(kSplines[4], content); });
  }
  cases.time("mms-tts 400 letters", {"inverse_spline", R"({"bins": 10})"},
             "X=1,801 params=1,801,29");
  cases.limited_by("two passes over exponentials of its bins for each element");
}

}  // namespace vkformer::conformance
