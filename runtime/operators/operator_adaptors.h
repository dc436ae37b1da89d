// The operators that run_operator knows: one adaptor each, which checks an OperatorCall and turns
// it into a graph of that operator. The explicit list is ops/op_list.def; docs/operators.md,
// whose tables are made of the adaptors' first lines, documents inputs, attributes and outputs.
#pragma once

#include <span>

#include "operators/operator_arguments.h"

namespace vkformer {

struct OperatorAdaptor {
  const char* name;
  Result<PreparedOperator> (*prepare)(const OperatorArguments& arguments);
};

// Every adaptor, in name order.
std::span<const OperatorAdaptor> operator_adaptors();

// Of operators/<name>.cpp, or of the operator that it is a form of.
#define VKF_CALL(name) Result<PreparedOperator> prepare_##name(const OperatorArguments& arguments);
#include "ops/op_list.def"

}  // namespace vkformer
