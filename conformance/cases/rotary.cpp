// The cases of rotary: its checks, and what the benchmark times.
#include <cmath>

#include "conformance/cases.h"

namespace vkformer::conformance {
namespace {

// Angles in double, as the table's are made.
Result<CheckCase> rotary_case(const Shape& shape, int64_t turned, bool interleaved) {
  const Array x = random_array(shape, 1);
  Array y = x;
  const int64_t width = shape[3], tokens = shape[2];
  for (int64_t row = 0; row < x.size() / width; ++row) {
    for (int64_t i = 0; i < turned / 2; ++i) {
      const double angle =
          static_cast<double>(row % tokens) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
      const int64_t u = row * width + (interleaved ? 2 * i : i);
      const int64_t v = interleaved ? u + 1 : u + turned / 2;
      y[u] = x[u] * std::cos(angle) - x[v] * std::sin(angle);
      y[v] = x[v] * std::cos(angle) + x[u] * std::sin(angle);
    }
  }
  const std::string attributes = R"({"rotary_dim": )" + std::to_string(turned) +
                                 R"(, "layout": ")" + (interleaved ? "interleaved" : "half") +
                                 "\"}";
  return call_case({"rotary", attributes, {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(2), 4}}});
}

}  // namespace

void rotary_cases(OperatorCases& cases) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 4}, Shape{2, 3, 9, 32}, Shape{1, 2, 33, 66}, Shape{1, 1, 1500, 128}}) {
    for (const bool interleaved : {false, true}) {
      const std::string layout = interleaved ? "interleaved" : "half";
      cases.check(layout + "/" + size_text(shape), shape[2] == 33,
                  [=] { return rotary_case(shape, shape[3] / 4 * 2, interleaved); });
      cases.check(layout + "-all/" + size_text(shape), shape[2] == 9,
                  [=] { return rotary_case(shape, shape[3], interleaved); });
    }
  }
  cases.time("llama-134m prefill 256", {"rotary", "{}"}, "X=1,12,256,64");
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
