#include "ops/group_norm.h"

#include "base/check.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

constexpr int64_t kMostNormGroups = (1 << 24) - 1;

}  // namespace

// group_norm (Convolution)
// attributes: `eps` (1e-5), `groups` (1)
// inputs:     X (B, C, ...); optional weight (C), bias (C)
// outputs:    Y, the shape of X
// computes:   (X − mean) / sqrt(variance + eps) · weight + bias, mean and variance over a group of
//             channels and all that follows
Result<PreparedOperator> prepare_group_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight", "bias"}, {"eps", "groups"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-5));
  VKF_ASSIGN(const int64_t groups, arguments.integer_or("groups", 1, 1, kMostNormGroups));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  const Shape given = x.shape;
  if (given.size() < 2) {
    return arguments.error("X has shape " + shape_text(given) +
                           ", but must have at least two dimensions, the channels second.");
  }
  const int64_t channels = given[1];
  VKF_ASSIGN(Tensor gain_bias, arguments.gain_bias("weight", "bias", channels));
  x.shape = {given[0], channels, element_count(Shape(given.begin() + 2, given.end()))};
  GroupNormAttrs attrs;
  attrs.groups = static_cast<uint32_t>(groups);
  attrs.epsilon = epsilon;
  attrs.order = ChannelOrder::kFirst;
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId gain_id = op.bind("gain_bias", std::move(gain_bias));
  VKF_ASSIGN(const TensorId y, add_group_norm(op.graph, x_id, gain_id, attrs));
  op.name_output(y, "Y");
  op.graph.tensor(y).shape = given;
  return op;
}

}  // namespace vkformer
