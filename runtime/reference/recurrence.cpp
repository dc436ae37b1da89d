#include "reference/recurrence.h"

#include <cmath>

#include "base/check.h"
#include "reference/activation.h"

namespace vkformer::reference {
namespace {

int64_t gates_of(CellKind cell) {
  return cell == CellKind::kLstm ? 4 : 3;
}

}  // namespace

Result<Array> recurrent_cell(const Array& gates, const Array& states, const Array& carry,
                             CellKind cell) {
  VKF_CHECK(check_array(carry, "recurrent_cell", "carry"));
  if (carry.rank() != 2) return invalid_argument("[recurrent_cell] carry must be (R, Hd).");
  const int64_t rows = carry.dim(0);
  const int64_t width = carry.dim(1);
  const int64_t line = gates_of(cell) * width;
  VKF_CHECK(check_shape(gates, {rows, line}, "recurrent_cell", "gates"));
  VKF_CHECK(check_shape(states, {rows, line}, "recurrent_cell", "states"));
  Array next = filled({rows, 2 * width}, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t u = 0; u < width; ++u) {
      const auto x = [&](int64_t gate) { return gates[r * line + gate * width + u]; };
      const auto s = [&](int64_t gate) { return states[r * line + gate * width + u]; };
      const auto sigmoid = [](double v) { return activate(ActivationKind::kSigmoid, v); };
      const double before = carry[r * width + u];
      double h = 0.0;
      double kept = 0.0;
      if (cell == CellKind::kGru) {
        const double reset = sigmoid(x(0) + s(0));
        const double update = sigmoid(x(1) + s(1));
        h = (1.0 - update) * std::tanh(x(2) + reset * s(2)) + update * before;
        kept = h;
      } else {
        kept = sigmoid(x(1) + s(1)) * before + sigmoid(x(0) + s(0)) * std::tanh(x(2) + s(2));
        h = sigmoid(x(3) + s(3)) * std::tanh(kept);
      }
      next[r * 2 * width + u] = h;
      next[r * 2 * width + width + u] = kept;
    }
  }
  return next;
}

Result<Array> recurrence(const Array& gates, const RecurrenceInputs& inputs, CellKind cell) {
  VKF_CHECK(check_array(gates, "recurrence", "gates"));
  VKF_CHECK(check_array(inputs.weight, "recurrence", "weight"));
  if (gates.rank() != 3 || inputs.weight.rank() != 2) {
    return invalid_argument("[recurrence] gates must be (B, T, G Hd) and weight (G Hd, Hd).");
  }
  const int64_t batch = gates.dim(0);
  const int64_t tokens = gates.dim(1);
  const int64_t width = inputs.weight.dim(1);
  const int64_t line = gates_of(cell) * width;
  const int64_t state = cell == CellKind::kLstm ? 2 * width : width;
  VKF_CHECK(check_shape(gates, {batch, tokens, line}, "recurrence", "gates"));
  VKF_CHECK(check_shape(inputs.weight, {line, width}, "recurrence", "weight"));
  Array y = filled({batch, tokens, state}, 0.0);
  for (int64_t b = 0; b < batch; ++b) {
    Array h = filled({1, width}, 0.0);
    Array carry = filled({1, width}, 0.0);
    for (int64_t u = 0; inputs.initial != nullptr && u < width; ++u) {
      h[u] = (*inputs.initial)[b * state + u];
      carry[u] = (*inputs.initial)[b * state + state - width + u];
    }
    for (int64_t t = 0; t < tokens; ++t) {
      Array x = filled({1, line}, 0.0);
      Array s = filled({1, line}, 0.0);
      for (int64_t n = 0; n < line; ++n) {
        x[n] = gates[(b * tokens + t) * line + n];
        s[n] = inputs.bias != nullptr ? (*inputs.bias)[n] : 0.0;
        for (int64_t k = 0; k < width; ++k) s[n] += inputs.weight[n * width + k] * h[k];
      }
      VKF_ASSIGN(const Array next, recurrent_cell(x, s, carry, cell));
      for (int64_t u = 0; u < width; ++u) {
        h[u] = next[u];
        carry[u] = next[width + u];
        y[(b * tokens + t) * state + u] = h[u];
        if (state > width) y[(b * tokens + t) * state + width + u] = carry[u];
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
