// The cases of gated_activation: its checks, and what the benchmark times.
#include "reference/gated_activation.h"
#include "base/check.h"
#include "conformance/activation_cases.h"
#include "conformance/case_sizes.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> gated_case_of(const Array& x, const std::string& kind) {
  return activation_case("gated_activation", x, kind, reference::gated_activation, magnitude_of(x));
}

// WaveNet's unit: both halves have an activation.
Result<CheckCase> unit_case(const Array& x) {
  VKF_ASSIGN(Array y, reference::gated_activation(x, reference::ActivationKind::kTanh,
                                                  reference::ActivationKind::kSigmoid));
  return call_case({"gated_activation", R"({"kind": "tanh", "up": "sigmoid"})", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(1), 1.0}}});
}

}  // namespace

void gated_activation_cases(OperatorCases& cases) {
  add_activation_checks(cases, 2, gated_case_of);
  for (const RowSize& size : row_sizes(2)) {
    cases.check("unit/" + size.name, size.quick, [=] { return unit_case(row_array(size)); });
  }
  cases.time("llama-134m prefill 256", {"gated_activation", R"({"kind": "silu"})"}, "X=256,4096");
  cases.time("llama-134m decode", {"gated_activation", R"({"kind": "silu"})"}, "X=1,4096");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
