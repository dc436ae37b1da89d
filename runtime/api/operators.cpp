#include "vkformer/operators.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "operators/operator_runner.h"

namespace vkformer {

Result<OperatorResult> run_operator(const Device& device, const OperatorCall& call,
                                    const OperatorOptions& options) {
  return guarded([&] { return run_operator_call(HandleAccess::impl(device), call, options); });
}

std::vector<std::string> operator_names() {
  return if_present([] { return known_operators(); });
}

}  // namespace vkformer
