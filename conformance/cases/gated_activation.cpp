// The cases of gated_activation: its checks, and what the benchmark times.
#include "reference/gated_activation.h"
#include "conformance/activation_cases.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> gated_case_of(const Array& x, const std::string& kind) {
  return activation_case("gated_activation", x, kind, reference::gated_activation, magnitude_of(x));
}

}  // namespace

void gated_activation_cases(OperatorCases& cases) {
  add_activation_checks(cases, 2, gated_case_of);
  cases.time("llama-134m prefill 256", {"gated_activation", R"({"kind": "silu"})"}, "X=256,4096");
  cases.time("llama-134m decode", {"gated_activation", R"({"kind": "silu"})"}, "X=1,4096");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
