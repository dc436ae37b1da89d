#include "conformance/cases.h"

namespace vkformer::conformance {

const std::vector<OperatorCases>& all_cases() {
  static const std::vector<OperatorCases> kCases = [] {
    std::vector<OperatorCases> list;
    const auto add = [&](const char* op, void (*fill)(OperatorCases & cases)) {
      fill(list.emplace_back(op));
    };
#define VKF_OP(name) add(#name, name##_cases);
#include "ops/op_list.def"
    return list;
  }();
  return kCases;
}

std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (const OperatorCases& cases : all_cases()) {
    checks.insert(checks.end(), cases.checks().begin(), cases.checks().end());
  }
  return checks;
}

}  // namespace vkformer::conformance
