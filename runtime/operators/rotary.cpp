#include "ops/rotary.h"

#include <algorithm>

#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "ops/rotary_table.h"

namespace vkformer {
namespace {

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

}  // namespace

// rotary (Tokens and positions)
// attributes: `rotary_dim` r (D), `theta` (10000), `factor` (1), `layout` (half)
// inputs:     X (..., T, D); optional position_ids (B or 1, T) or (T)
// outputs:    Y, the shape of X
// computes:   angle = position · theta^(−2i/r) / factor, i < r/2; pairs (i, i + r/2) (`half`) or
//             (2i, 2i + 1) (`interleaved`); (u, v) becomes (u cos − v sin, v cos + u sin); columns
//             from r on are copied. The angles are made on the host, in double
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
  VKF_ASSIGN(const int64_t turned, arguments.integer_or("rotary_dim", width, 2, int64_t{1} << 28));
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
  inputs.positions = op.bind("positions", words_tensor(rows, {static_cast<int64_t>(rows.size())}));
  inputs.x = op.bind("X", std::move(x));
  VKF_ASSIGN(const TensorId y, add_rotary(op.graph, inputs, attrs));
  op.name_output(y, "Y");
  return op;
}

}  // namespace vkformer
