#include "ops/attention_weights.h"

#include "base/check.h"
#include "operators/attention_call.h"
#include "operators/operator_adaptors.h"
#include "ops/row_entropy.h"

namespace vkformer {

// attention_weights (Matrix product and attention)
// attributes: the same
// inputs:     the same
// outputs:    output, weights (B, H, T, S), entropy (B, H, T)
// computes:   the same, with the probabilities and their entropy
Result<PreparedOperator> prepare_attention_weights(const OperatorArguments& arguments) {
  VKF_ASSIGN(AttentionCall call, prepare_attention_call(arguments));
  VKF_CHECK(add_attention_output(call));
  AttentionWeightsAttrs attrs;
  attrs.attention = call.attrs;
  VKF_ASSIGN(const TensorId weights, add_attention_weights(call.op.graph, call.inputs, attrs));
  VKF_ASSIGN(const TensorId entropy, add_row_entropy(call.op.graph, weights));
  call.op.name_output(weights, "weights");
  call.op.name_output(entropy, "entropy");
  return std::move(call.op);
}

}  // namespace vkformer
