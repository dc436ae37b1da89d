// A call of attention with its operands bound: what attention, sliding_window_attention and
// attention_weights have in common.
#pragma once

#include "operators/operator_arguments.h"
#include "ops/attention.h"

namespace vkformer {

struct AttentionCall {
  PreparedOperator op;
  AttentionInputs inputs;
  AttentionAttrs attrs;
};

Result<AttentionCall> prepare_attention_call(const OperatorArguments& arguments);
// Adds the attention itself, as the output "output".
Status add_attention_output(AttentionCall& call);

}  // namespace vkformer
