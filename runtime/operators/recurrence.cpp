#include "ops/recurrence.h"

#include <algorithm>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/combine.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

constexpr uint32_t kNoRow = ~0u;  // gather_rows gives zeros for it

// weight_<side> (N, K) with bias_<side> (N), packed as a model's weights are.
Result<LinearWeight> packed_weight(PreparedOperator& op, const OperatorArguments& arguments,
                                   const std::string& side, const Shape& wanted) {
  VKF_ASSIGN(const Tensor weight, arguments.floats("weight_" + side));
  if (weight.shape != wanted) {
    return arguments.error("weight_" + side + " has shape " + shape_text(weight.shape) +
                           ", but X and weight_hh ask for " + shape_text(wanted) + ".");
  }
  VKF_ASSIGN(const std::vector<float> values, weight.to_floats());
  std::vector<float> bias;
  if (arguments.find("bias_" + side) != nullptr) {
    VKF_ASSIGN(const Tensor given, arguments.floats("bias_" + side));
    if (given.shape != Shape{wanted[0]}) {
      return arguments.error("bias_" + side + " has shape " + shape_text(given.shape) +
                             ", but must be " + shape_text({wanted[0]}) + ".");
    }
    VKF_ASSIGN(bias, given.to_floats());
  }
  VKF_ASSIGN(const MatrixFormat format, arguments.weight_format());
  VKF_ASSIGN(const PackedMatrix packed,
             pack_matrix(values, {wanted[0], wanted[1], MatrixOrder::kOutIn}, bias, format));
  return LinearWeight{.tensor = op.bind("weight_" + side, packed_tensor(packed)),
                      .n = static_cast<uint32_t>(wanted[0]),
                      .k = static_cast<uint32_t>(wanted[1]),
                      .bias_offset = packed.bias_offset,
                      .format = format};
}

// In which order a row's tokens are run, and where their states go back to.
struct Order {
  std::vector<uint32_t> from;   // (B, T)
  std::vector<uint32_t> to;     // (B, T)
  std::vector<uint32_t> last;   // (B); kNoRow without tokens
  std::vector<uint32_t> empty;  // (B): the row itself where it has no tokens, else kNoRow
};

Result<Order> read_order(const OperatorArguments& arguments, int64_t batch, int64_t tokens) {
  VKF_ASSIGN(const bool reverse, arguments.attributes().get_bool_or("reverse", false));
  std::vector<int64_t> mask(static_cast<size_t>(batch * tokens), 1);
  if (const Tensor* given = arguments.find("mask")) {
    if (given->shape != Shape{batch, tokens}) {
      return arguments.error("mask has shape " + shape_text(given->shape) +
                             ", but must be (B, T) = " + shape_text({batch, tokens}) + ".");
    }
    VKF_ASSIGN(mask, given->to_ints());
  }
  Order order{.from = std::vector<uint32_t>(mask.size(), kNoRow),
              .to = std::vector<uint32_t>(mask.size(), kNoRow),
              .last = {},
              .empty = {}};
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<uint32_t> real;
    for (int64_t t = 0; t < tokens; ++t) {
      if (mask[static_cast<size_t>(b * tokens + t)] == 0) continue;
      real.push_back(static_cast<uint32_t>(b * tokens + t));
    }
    if (reverse) std::reverse(real.begin(), real.end());
    const auto first = static_cast<uint32_t>(b * tokens);
    for (size_t n = 0; n < real.size(); ++n) {
      order.from[first + n] = real[n];
      order.to[real[n]] = first + static_cast<uint32_t>(n);
    }
    const auto kept = static_cast<uint32_t>(real.size());
    order.last.push_back(kept == 0 ? kNoRow : first + kept - 1);
    order.empty.push_back(kept == 0 ? static_cast<uint32_t>(b) : kNoRow);
  }
  return order;
}

// [h0 | c0] (B, St), or none. An absent half of it is zeros.
Result<TensorId> initial_state(PreparedOperator& op, const OperatorArguments& arguments,
                               CellKind cell, const Shape& part) {
  const bool lstm = cell == CellKind::kLstm;
  if (arguments.find("h0") == nullptr && (!lstm || arguments.find("c0") == nullptr)) {
    return kNoTensor;
  }
  TensorId state = kNoTensor;
  for (const char* name : {"h0", "c0"}) {
    if (name[0] == 'c' && !lstm) continue;
    Tensor half = Tensor::zeros(DType::kF32, part);
    if (arguments.find(name) != nullptr) {
      VKF_ASSIGN(half, arguments.floats(name));
    }
    if (half.shape != part) {
      return arguments.error(std::string(name) + " has shape " + shape_text(half.shape) +
                             ", but must be (B, Hd) = " + shape_text(part) + ".");
    }
    const TensorId bound = op.bind(name, std::move(half));
    if (state == kNoTensor) {
      state = bound;
    } else {
      VKF_ASSIGN(state, add_concat_columns(op.graph, state, bound));
    }
  }
  return state;
}

// Y, h and c of the states (B, T, St) in the order they were run in.
Status name_states(PreparedOperator& op, Order order, TensorId states, TensorId initial,
                   const Shape& y_shape) {
  Graph& g = op.graph;
  const int64_t batch = y_shape[0];
  const int64_t width = y_shape[2];
  const auto line = static_cast<uint32_t>(g.tensor(states).shape[2]);
  const bool any_empty = std::count(order.last.begin(), order.last.end(), kNoRow) > 0;
  const TensorId last_rows = op.bind("last", words_tensor(order.last, {batch}));
  VKF_ASSIGN(TensorId last, add_gather_rows(g, {.x = states, .indices = last_rows}));
  if (any_empty && initial != kNoTensor) {
    const TensorId rows = op.bind("empty", words_tensor(order.empty, {batch}));
    VKF_ASSIGN(const TensorId kept, add_gather_rows(g, {.x = initial, .indices = rows}));
    VKF_ASSIGN(last, add_combine(g, last, kept, {}));
  }
  const TensorId to = op.bind("to", words_tensor(order.to, {batch, y_shape[1]}));
  VKF_ASSIGN(TensorId y, add_gather_rows(g, {.x = states, .indices = to}));
  VKF_ASSIGN(y, add_columns(g, y, {0, line}, y_shape));
  VKF_ASSIGN(const TensorId h, add_columns(g, last, {0, line}, {batch, width}));
  op.name_output(y, "Y");
  op.name_output(h, "h");
  if (line == width) return {};
  VKF_ASSIGN(const TensorId c,
             add_columns(g, last, {static_cast<uint32_t>(width), line}, {batch, width}));
  op.name_output(c, "c");
  return {};
}

Result<PreparedOperator> prepare_layer(const OperatorArguments& arguments, CellKind cell) {
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  VKF_ASSIGN(const Tensor* hidden, arguments.require("weight_hh"));
  if (x.shape.size() != 3 || x.shape[0] < 1 || x.shape[1] < 1 || x.shape[2] < 1) {
    return arguments.error("X has shape " + shape_text(x.shape) +
                           ", but must be (B, T, in), all at least 1.");
  }
  if (hidden->shape.size() != 2 || hidden->shape[1] < 1) {
    return arguments.error("weight_hh has shape " + shape_text(hidden->shape) + ", but must be (" +
                           std::to_string(gates_of(cell)) + " Hd, Hd).");
  }
  const int64_t batch = x.shape[0];
  const int64_t tokens = x.shape[1];
  const int64_t width = hidden->shape[1];
  const int64_t stacked = width * gates_of(cell);
  PreparedOperator op;
  VKF_ASSIGN(const LinearWeight input, packed_weight(op, arguments, "ih", {stacked, x.shape[2]}));
  VKF_ASSIGN(const LinearWeight state, packed_weight(op, arguments, "hh", {stacked, width}));
  VKF_ASSIGN(Order order, read_order(arguments, batch, tokens));
  VKF_ASSIGN(const TensorId initial, initial_state(op, arguments, cell, {batch, width}));
  const TensorId from = op.bind("from", words_tensor(order.from, {batch, tokens}));
  VKF_ASSIGN(TensorId rows,
             add_gather_rows(op.graph, {.x = op.bind("X", std::move(x)), .indices = from}));
  VKF_ASSIGN(const TensorId gates, add_linear(op.graph, rows, input, {}));
  VKF_ASSIGN(const TensorId states,
             add_recurrence(op.graph, {.gates = gates, .weight = state, .initial = initial},
                            {.cell = cell}));
  VKF_CHECK(name_states(op, std::move(order), states, initial, {batch, tokens, width}));
  return op;
}

}  // namespace

// gru (Recurrent layers)
// attributes: `reverse` (false)
// inputs:     X (B, T, in), *weight* weight_ih (3 Hd, in), *weight* weight_hh (3 Hd, Hd); optional
//             bias_ih, bias_hh (3 Hd), h0 (B, Hd), mask (B, T)
// outputs:    Y (B, T, Hd), h (B, Hd)
// computes:   every state and the last one; gates r, z, n as in
//             [recurrent_models.md](recurrent_models.md)
Result<PreparedOperator> prepare_gru(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names(
      {"X", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0", "mask"}, {"reverse"}));
  return prepare_layer(arguments, CellKind::kGru);
}

// lstm (Recurrent layers)
// attributes: `reverse` (false)
// inputs:     the same with 4 Hd rows; optional c0 (B, Hd)
// outputs:    Y, h, c (B, Hd)
// computes:   gates i, f, g, o
Result<PreparedOperator> prepare_lstm(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names(
      {"X", "weight_ih", "weight_hh", "bias_ih", "bias_hh", "h0", "c0", "mask"}, {"reverse"}));
  return prepare_layer(arguments, CellKind::kLstm);
}

}  // namespace vkformer
