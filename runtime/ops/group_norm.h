// group_norm: y = (x - mean) / sqrt(variance + epsilon) * gain + bias. Mean and biased variance are
// over the channels of a group and all tokens of a batch entry (Wu and He, 2018). With as many
// groups as channels it is the instance norm.
//
//   x (B, C, T) or (B, T, C), gain_bias (2, C) -> y, the shape of x
#pragma once

#include "ops/conv_window.h"

namespace vkformer {

struct GroupNormAttrs {
  uint32_t groups = 1;
  float epsilon = 1e-5f;  // added to the variance
  ChannelOrder order = ChannelOrder::kLast;
};

// The output's description, or why the inputs do not fit: x (B, C, T) or (B, T, C), gain_bias
// (2, C).
Result<TensorDesc> check_group_norm(const TensorDesc& x, const TensorDesc& gain_bias,
                                    GroupNormAttrs attrs);

// Adds y = group_norm(x, gain_bias) to the graph and returns y, the shape of x: (B, C, T) or
// (B, T, C).
Result<TensorId> add_group_norm(Graph& graph, TensorId x, TensorId gain_bias, GroupNormAttrs attrs);

Status lower_group_norm(LowerContext& context, const Node& node);

}  // namespace vkformer
