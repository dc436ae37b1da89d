// The cases of activation: its checks, and what the benchmark times.
#include "base/check.h"
#include "conformance/activation_cases.h"

namespace vkformer::conformance {
namespace {

// Where activations are steep, flat, or easily wrong. Far below -13 the exact gelu is 0, and a
// power that overflows on the way makes it NaN.
Array activation_edges() {
  Array x{{1, 0}, {}};
  for (const double value : {-1e30, -65536.0, -700.0, -100.0, -89.0, -20.0, -14.0, -13.5, -13.0,
                             -12.9, -6.0, -1.0, -1e-3, -1e-20, -1e-40, -0.0}) {
    x.data.push_back(value);
    x.data.push_back(-value);
  }
  x.shape[1] = x.size();
  return reference::round_to_f32(x);
}

Result<CheckCase> activation_case_of(const Array& x, const std::string& kind) {
  return activation_case("activation", x, kind, reference::activation, 1);
}

}  // namespace

void activation_cases(OperatorCases& cases) {
  add_activation_checks(cases, 1, activation_case_of);
  for (const char* kind : kActivationKinds) {
    cases.check(std::string(kind) + "/edges", true,
                [=] { return activation_case_of(activation_edges(), kind); });
  }
  // More than 128 MiB in one binding: computed where the device binds that much, else refused.
  cases.check("relu/beyond-128-mib", false, []() -> Result<CheckCase> {
    Array x = reference::filled({1, (int64_t{128} << 18) + 1031}, 0.0);
    for (size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<double>(i % 8191) - 4000;
    VKF_ASSIGN(CheckCase made, activation_case_of(x, "relu"));
    made.may_be_refused = true;
    return made;
  });
  cases.time("bert-base 1x128", {"activation", R"({"kind": "gelu"})"}, "X=128,3072");
  cases.time("whisper-tiny 30 s", {"activation", R"({"kind": "gelu"})"}, "X=1500,1536");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
