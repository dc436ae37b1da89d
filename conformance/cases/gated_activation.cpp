// The cases of gated_activation: its checks, and what the benchmark times.
#include "reference/gated_activation.h"
#include "base/check.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "reference/activation.h"

namespace vkformer::conformance {
namespace {

Result<CheckCase> gated_case(const Array& x, const std::string& kind) {
  VKF_ASSIGN(const reference::ActivationKind k, reference::activation_from_name(kind));
  VKF_ASSIGN(Array y, reference::gated_activation(x, k));
  const double magnitude = magnitude_of(x);
  return call_case({"gated_activation", R"({"kind": ")" + kind + "\"}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(1), magnitude}}});
}

}  // namespace

void gated_activation_cases(OperatorCases& cases) {
  for (const char* kind : kActivationKinds) {
    for (const RowSize& size : row_sizes(2)) {
      cases.check(std::string(kind) + "/" + size.name, size.quick,
                  [=] { return gated_case(row_array(size), kind); });
    }
  }
  cases.time("llama-134m prefill 256", {"gated_activation", R"({"kind": "silu"})"}, "X=256,4096");
  cases.time("llama-134m decode", {"gated_activation", R"({"kind": "silu"})"}, "X=1,4096");
  cases.limited_by("an exponential or erf for each element");
}

}  // namespace vkformer::conformance
