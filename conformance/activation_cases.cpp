#include "conformance/activation_cases.h"

#include "base/check.h"
#include "conformance/case_sizes.h"

namespace vkformer::conformance {

Result<CheckCase> activation_case(const char* op, const Array& x, const std::string& kind,
                                  ActivationReference reference, double magnitude) {
  VKF_ASSIGN(const reference::ActivationKind k, reference::activation_from_name(kind));
  VKF_ASSIGN(Array y, reference(x, k));
  return call_case({op, R"({"kind": ")" + kind + "\"}", {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(1), magnitude}}});
}

void add_activation_checks(OperatorCases& cases, int64_t factor,
                           Result<CheckCase> (*make)(const Array& x, const std::string& kind)) {
  for (const char* kind : kActivationKinds) {
    for (const RowSize& size : row_sizes(factor)) {
      cases.check(std::string(kind) + "/" + size.name, size.quick,
                  [=] { return make(row_array(size), kind); });
    }
  }
}

}  // namespace vkformer::conformance
