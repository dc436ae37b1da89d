// Adaptors of position embeddings and of biases that depend on positions.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/relative_positions.h"
#include "ops/rotary.h"
#include "ops/rotary_table.h"

namespace vkformer {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;
constexpr int64_t kMostTokens = int64_t{1} << 28;

// The position of every row of X (..., T, D): those of position_ids (B or 1, T) or (T), else 0 ...
// T - 1.
Result<std::vector<int64_t>> row_positions(const OperatorArguments& arguments, const Shape& x) {
  const int64_t tokens = x[x.size() - 2];
  const int64_t rows = element_count(Shape(x.begin(), x.end() - 1));
  std::vector<int64_t> positions(static_cast<size_t>(rows));
  const Tensor* given = arguments.find("position_ids");
  if (given == nullptr) {
    for (int64_t row = 0; row < rows; ++row) positions[static_cast<size_t>(row)] = row % tokens;
    return positions;
  }
  const int64_t batch = x.size() > 2 ? x.front() : 1;
  const Shape& shape = given->shape;
  const bool shared = shape == Shape{tokens} || shape == Shape{1, tokens};
  if (!shared && shape != Shape{batch, tokens}) {
    return arguments.error("position_ids has shape " + shape_text(shape) + ", but must be " +
                           shape_text({batch, tokens}) + " or " + shape_text({1, tokens}) + ".");
  }
  VKF_ASSIGN(const std::vector<int64_t> values, given->to_ints());
  const int64_t rows_of_item = batch > 0 ? rows / batch : 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t item = shared ? 0 : row / rows_of_item;
    positions[static_cast<size_t>(row)] = values[static_cast<size_t>(item * tokens + row % tokens)];
  }
  return positions;
}

// The table holds the positions that occur, so that its size is that of X whatever they are.
// Returns its (P, r) and writes into `rows` where each position's row is.
Tensor table_of(const RotaryFrequencies& frequencies, const std::vector<int64_t>& positions,
                std::vector<uint32_t>& rows) {
  std::vector<int64_t> known = positions;
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (int64_t position : positions) {
    const auto at = std::lower_bound(known.begin(), known.end(), position);
    rows.push_back(static_cast<uint32_t>(at - known.begin()));
  }
  return Tensor::from_floats(
      {static_cast<int64_t>(known.size()), static_cast<int64_t>(2 * frequencies.radians.size())},
      rotary_rows(frequencies, known));
}

Tensor index_tensor(const std::vector<uint32_t>& index, Shape shape) {
  return Tensor::from_ints(std::move(shape), std::vector<int64_t>(index.begin(), index.end()));
}

// bias[h, i] = table[index[i], h]: table (rows, H), index (shape) -> (H, shape).
Result<Tensor> looked_up(const OperatorArguments& arguments, const std::vector<uint32_t>& index,
                         int64_t rows, const Shape& shape) {
  VKF_ASSIGN(const Tensor table, arguments.floats("table"));
  if (table.shape.size() != 2 || table.shape[0] != rows) {
    return arguments.error("table has shape " + shape_text(table.shape) + ", but must be (" +
                           std::to_string(rows) + ", H).");
  }
  const auto heads = static_cast<size_t>(table.shape[1]);
  if (heads * index.size() > static_cast<uint64_t>(kMostElements)) {
    return arguments.error("The bias has " + std::to_string(heads) + " heads of " +
                           std::to_string(index.size()) + " elements, but may have at most " +
                           std::to_string(kMostElements) + " in all.");
  }
  VKF_ASSIGN(const std::vector<float> values, table.to_floats());
  std::vector<float> bias(heads * index.size());
  for (size_t h = 0; h < heads; ++h) {
    for (size_t i = 0; i < index.size(); ++i) {
      bias[h * index.size() + i] = values[index[i] * heads + h];
    }
  }
  Shape out = {table.shape[1]};
  out.insert(out.end(), shape.begin(), shape.end());
  return Tensor::from_floats(std::move(out), bias);
}

// (T, S) of a bias, by query_length and key_length.
Result<Shape> bias_shape(const OperatorArguments& arguments) {
  Shape shape(2);
  VKF_ASSIGN(shape[0], arguments.attributes().get_int("query_length"));
  VKF_ASSIGN(shape[1], arguments.attributes().get_int("key_length"));
  const bool sane = shape[0] >= 0 && shape[1] >= 0 && shape[0] <= kMostTokens &&
                    (shape[0] == 0 || shape[1] <= kMostElements / shape[0]);
  if (sane) return shape;
  return arguments.error("query_length and key_length are " + shape_text(shape) +
                         ", but neither may be negative and their product at most " +
                         std::to_string(kMostElements) + ".");
}

}  // namespace

Result<PreparedOperator> prepare_rotary(const OperatorArguments& arguments) {
  VKF_CHECK(
      arguments.check_names({"X", "position_ids"}, {"rotary_dim", "theta", "factor", "layout"}));
  const JsonConfig& attributes = arguments.attributes();
  VKF_ASSIGN(Tensor x, arguments.floats("X"));
  if (x.shape.size() < 2) {
    return arguments.error("X has shape " + shape_text(x.shape) +
                           ", but must have at least two dimensions (..., T, D).");
  }
  const int64_t width = x.shape.back();
  VKF_ASSIGN(const int64_t turned, arguments.integer_or("rotary_dim", width, 2, kMostElements));
  RotaryScaling scaling;
  scaling.kind = RotaryScalingKind::kLinear;
  VKF_ASSIGN(scaling.theta, attributes.get_double_or("theta", 10000.0));
  VKF_ASSIGN(scaling.factor, attributes.get_double_or("factor", 1.0));
  VKF_ASSIGN(const std::string layout, attributes.get_string_or("layout", "half"));
  if (layout != "half" && layout != "interleaved") {
    return arguments.error("The layout is '" + layout + "', but must be half or interleaved.");
  }
  VKF_ASSIGN(const std::vector<int64_t> positions, row_positions(arguments, x.shape));
  VKF_ASSIGN(const RotaryFrequencies frequencies, rotary_frequencies(scaling, turned, 0));
  RotaryAttrs attrs;
  attrs.head_width = static_cast<uint32_t>(width);
  attrs.rotary_width = static_cast<uint32_t>(turned);
  if (layout == "interleaved") attrs.pairs = RotaryPairs::kInterleaved;
  std::vector<uint32_t> rows;
  PreparedOperator op;
  RotaryInputs inputs;
  inputs.table = op.bind("table", table_of(frequencies, positions, rows));
  Tensor row_tensor = Tensor::zeros(DType::kU32, {static_cast<int64_t>(rows.size())});
  if (!rows.empty()) std::memcpy(row_tensor.bytes.data(), rows.data(), row_tensor.bytes.size());
  inputs.positions = op.bind("positions", std::move(row_tensor));
  inputs.x = op.bind("X", std::move(x));
  VKF_ASSIGN(const TensorId y, add_rotary(op.graph, inputs, attrs));
  op.name_output(y, "Y");
  return op;
}

Result<PreparedOperator> prepare_alibi_bias(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({}, {"num_heads", "query_length", "key_length"}));
  VKF_ASSIGN(const Shape shape, bias_shape(arguments));
  VKF_ASSIGN(const int64_t heads, arguments.integer_or("num_heads", 0, 1, 1 << 16));
  const int64_t pairs = shape[0] * shape[1];
  if (pairs > kMostElements / heads) {
    return arguments.error("The bias of " + std::to_string(heads) + " heads over " +
                           shape_text(shape) + " has more than " + std::to_string(kMostElements) +
                           " elements.");
  }
  const std::vector<double> slopes = alibi_slopes(heads);
  std::vector<float> bias;
  bias.reserve(static_cast<size_t>(heads * pairs));
  for (const double slope : slopes) {
    for (int64_t i = 0; i < shape[0]; ++i) {
      const int64_t query = i + shape[1] - shape[0];  // the last query stands at the last key
      for (int64_t j = 0; j < shape[1]; ++j) {
        bias.push_back(static_cast<float>(slope * static_cast<double>(j - query)));
      }
    }
  }
  PreparedOperator op;
  op.ready.emplace("slopes",
                   Tensor::from_floats({heads}, std::vector<float>(slopes.begin(), slopes.end())));
  op.ready.emplace("bias", Tensor::from_floats({heads, shape[0], shape[1]}, bias));
  return op;
}

Result<PreparedOperator> prepare_t5_relative_position(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"table"}, {"query_length", "key_length", "query_offset",
                                              "num_buckets", "max_distance", "bidirectional"}));
  VKF_ASSIGN(const Shape shape, bias_shape(arguments));
  VKF_ASSIGN(const int64_t offset,
             arguments.integer_or("query_offset", 0, -kMostTokens, kMostTokens));
  T5Buckets t5;
  VKF_ASSIGN(t5.buckets, arguments.attributes().get_int_or("num_buckets", t5.buckets));
  VKF_ASSIGN(t5.max_distance, arguments.attributes().get_int_or("max_distance", t5.max_distance));
  VKF_ASSIGN(const bool both, arguments.attributes().get_bool_or("bidirectional", true));
  if (!both) t5.direction = T5Buckets::Direction::kBack;
  VKF_CHECK(check_t5_buckets(t5));
  // Only T + S - 1 distances occur: from -(T - 1) - offset to S - 1 - offset.
  const bool empty = shape[0] == 0 || shape[1] == 0;
  std::vector<uint32_t> of_distance;
  for (int64_t d = 1 - shape[0]; !empty && d < shape[1]; ++d) {
    of_distance.push_back(t5_bucket(d - offset, t5));
  }
  std::vector<uint32_t> buckets;
  buckets.reserve(static_cast<size_t>(shape[0] * shape[1]));
  for (int64_t i = 0; i < shape[0] && !empty; ++i) {
    const auto first = of_distance.begin() + (shape[0] - 1 - i);
    buckets.insert(buckets.end(), first, first + shape[1]);
  }
  PreparedOperator op;
  VKF_ASSIGN(Tensor bias, looked_up(arguments, buckets, t5.buckets, shape));
  op.ready.emplace("bias", std::move(bias));
  op.ready.emplace("buckets", index_tensor(buckets, shape));
  return op;
}

Result<PreparedOperator> prepare_swin_relative_position(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"table"}, {"window"}));
  VKF_ASSIGN(const int64_t window, arguments.attributes().get_int("window"));
  VKF_ASSIGN(const std::vector<uint32_t> index, swin_relative_index(window));
  const int64_t cells = window * window;
  const int64_t rows = (2 * window - 1) * (2 * window - 1);
  PreparedOperator op;
  VKF_ASSIGN(Tensor bias, looked_up(arguments, index, rows, {cells, cells}));
  op.ready.emplace("bias", std::move(bias));
  op.ready.emplace("index", index_tensor(index, {cells, cells}));
  return op;
}

}  // namespace vkformer
