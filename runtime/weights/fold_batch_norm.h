// The table of the operator conv: a convolution's weight with the batch norm that follows folded
// into it. The norm (Ioffe and Szegedy, 2015) has its running statistics:
//
//   scale = gain / sqrt(variance + epsilon)
//   row o of the table: scale[o] * weight[o, ...], then (bias[o] - mean[o]) * scale[o] + shift[o]
//
// Computed in double and rounded once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// A convolution: `weight` has out rows (C/groups * kh * kw) one after the other.
struct ConvWeight {
  std::string name;               // for messages: "[name] ..."
  int64_t out = 0;                // output channels
  std::span<const float> weight;  // (out, C/groups * kh * kw)
  std::span<const float> bias{};  // (out), or empty: 0
};

// A batch norm after it.
struct BatchNorm {
  std::span<const float> gain;      // (out)
  std::span<const float> shift;     // (out)
  std::span<const float> mean;      // (out), running
  std::span<const float> variance;  // (out), running
  double epsilon = 1e-5;            // added to the variance
};

// The table (out, C/groups * kh * kw + 1) of a convolution alone.
Result<std::vector<float>> pack_conv(const ConvWeight& conv);

// The same with the batch norm folded in.
Result<std::vector<float>> fold_batch_norm(const ConvWeight& conv, const BatchNorm& norm);

}  // namespace vkformer
