// softmax: y = softmax(x / temperature + bias) over the allowed keys of the last axis.
//
//   y_j = exp(s_j - max s) / sum_k exp(s_k - max s), s = x / temperature + bias
//
// A key that is masked, or whose score is -inf, gets exactly 0. A row without any other key is all
// zeros, never NaN. A NaN score makes the other entries of its row NaN.
// x (B, H, T, S), bias broadcast to (B, H, T, S) -> y (B, H, T, S).
// Needs: mask.
#pragma once

#include <span>

#include "reference/mask.h"

namespace vkformer::reference {

struct SoftmaxOptions {
  double temperature = 1.0;  // divides x, not the bias; above 0
  MaskOptions masks;
  const Array* bias = nullptr;  // broadcast to (B, H, T, S); may hold -inf
};

// x (B, H, T, S), or fewer axes (then the missing leading ones are 1) -> the shape of x.
Result<Array> softmax(const Array& x, const SoftmaxOptions& options = {});

// One row in place: `scores` become probabilities. A score of -inf is a masked key. scores (S).
void softmax_row(std::span<double> scores);

// Is the temperature a finite number above 0? `op` names the operator in the message.
Status check_temperature(double temperature, std::string_view op);

}  // namespace vkformer::reference
