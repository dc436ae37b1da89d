// Operator cases: what op.json says.
#include "case_command.h"

namespace vkformer::cli {

Result<OperatorCall> operator_of_case(const Json& description) {
  const auto op = description.find("op");
  if (op == description.end() || !op->is_string()) {
    return Error{ErrorCode::kInvalidFile, "[op.json] has no \"op\" with a name."};
  }
  OperatorCall call;
  call.name = op->get<std::string>();
  const auto attributes = description.find("attributes");
  if (attributes != description.end()) call.attributes_json = json_text(*attributes);
  return call;
}

}  // namespace vkformer::cli
