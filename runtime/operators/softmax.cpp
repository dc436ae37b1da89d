#include "ops/softmax.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/operator_scores.h"

namespace vkformer {

// softmax (Row-wise operators)
// attributes: `temperature` (1), masks
// inputs:     X (B, H, T, S) or fewer leading dimensions; optional key_mask (B, S), mask and bias
//             (each broadcast to (B, H, T, S)), global (B, T), documents, prefix, block_map
// outputs:    Y, the shape of X
// computes:   softmax(X / temperature + bias) over the allowed keys
Result<PreparedOperator> prepare_softmax(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names(
      {"X", "key_mask", "mask", "bias", "global", "documents", "prefix", "block_map"},
      {"temperature", "causal", "causal_offset", "window_left", "window_right", "prefix",
       "block_size"}));
  SoftmaxAttrs attrs;
  VKF_ASSIGN(attrs.temperature, arguments.number_or("temperature", 1.0));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  const Shape given = x.shape;
  if (given.empty() || given.size() > 4) {
    return arguments.error("X has shape " + shape_text(given) +
                           ", but must have one to four dimensions, at most (B, H, T, S).");
  }
  x.shape = padded_shape(given, 4);
  VKF_ASSIGN(ScoreTerms terms,
             pack_call_terms(arguments, {x.shape[0], x.shape[1], x.shape[2], x.shape[3]}));
  attrs.terms = terms.params;
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId terms_id = op.bind("terms", std::move(terms.words));
  VKF_ASSIGN(const TensorId y, add_softmax(op.graph, x_id, terms_id, attrs));
  op.name_output(y, "Y");
  op.graph.tensor(y).shape = given;
  return op;
}

}  // namespace vkformer
