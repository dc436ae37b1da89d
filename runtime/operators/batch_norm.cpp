#include <algorithm>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/conv.h"
#include "weights/fold_batch_norm.h"

namespace vkformer {
namespace {

constexpr int64_t kMostBatchNormGroups = (1 << 24) - 1;

}  // namespace

// batch_norm (Convolution)
// attributes: `eps` (1e-5)
// inputs:     X (B, C, ...), running_mean (C), running_var (C); optional weight (C), bias (C)
// outputs:    Y, the shape of X
// computes:   (X − running_mean) / sqrt(running_var + eps) · weight + bias, by channel
//
// A depthwise convolution of one tap.
Result<PreparedOperator> prepare_batch_norm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"X", "weight", "bias", "running_mean", "running_var"}, {"eps"}));
  VKF_ASSIGN(const float epsilon, arguments.number_or("eps", 1e-5));
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  const Shape given = x.shape;
  if (given.size() < 2) {
    return arguments.error("X has shape " + shape_text(given) +
                           ", but must have at least two dimensions, the channels second.");
  }
  const int64_t channels = given[1];
  VKF_ASSIGN(const std::vector<float> gain, arguments.row_or("weight", channels, 1.0f));
  VKF_ASSIGN(const std::vector<float> shift, arguments.row_or("bias", channels, 0.0f));
  VKF_ASSIGN(const std::vector<float> mean, arguments.row("running_mean", channels));
  VKF_ASSIGN(const std::vector<float> variance, arguments.row("running_var", channels));
  const std::vector<float> ones(static_cast<size_t>(channels), 1.0f);
  VKF_ASSIGN(const std::vector<float> table,
             fold_batch_norm({"batch_norm", channels, ones},
                             {gain, shift, mean, variance, static_cast<double>(epsilon)}));
  x.shape = {given[0], channels, element_count(Shape(given.begin() + 2, given.end()))};
  ConvAttrs attrs;
  attrs.source.order = ChannelOrder::kFirst;
  attrs.out_order = ChannelOrder::kFirst;
  attrs.groups = static_cast<uint32_t>(std::min(channels, kMostBatchNormGroups));
  PreparedOperator op;
  const TensorId x_id = op.bind("X", std::move(x));
  const TensorId table_id = op.bind("table", Tensor::from_floats({channels, 2}, table));
  VKF_ASSIGN(const TensorId y, add_conv(op.graph, x_id, table_id, attrs));
  op.name_output(y, "Y");
  op.graph.tensor(y).shape = given;
  return op;
}

}  // namespace vkformer
