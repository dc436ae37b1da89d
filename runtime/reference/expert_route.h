// expert_route: the experts that each row of logits chooses, and their weights (Shazeer et al.,
// 2017; with sigmoids, a bias and groups DeepSeek-AI, 2024).
//
//   s = softmax(logits) or sigmoid(logits); of the experts of the best groups, by the sum of their
//   two best s + bias, the K best s + bias, equal ones by ascending index; w = scale s / (sum of
//   the chosen s + least_sum), or scale s
//
// Columns after the X experts are experts that every row takes, with w = sigmoid. Needs: Array.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

struct ExpertRouteOptions {
  int64_t experts = 1;  // X
  int64_t choices = 1;  // K
  bool sigmoid = false;
  bool normalize = true;
  double scale = 1;
  double least_sum = 0;
  int64_t groups = 1;
  int64_t kept_groups = 1;
  const Array* bias = nullptr;  // (X)
};

struct ExpertRoutes {
  Array experts;  // (R, K + A)
  Array weights;  // (R, K + A)
};

// logits (R, X + A). An error unless 1 <= K <= X <= the columns.
Result<ExpertRoutes> expert_route(const Array& logits, const ExpertRouteOptions& options);

}  // namespace vkformer::reference
