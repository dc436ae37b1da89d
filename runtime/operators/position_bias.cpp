#include "operators/position_bias.h"

#include "base/check.h"

namespace vkformer {

Result<Tensor> looked_up(const OperatorArguments& arguments, const std::vector<uint32_t>& index,
                         int64_t rows, const Shape& shape) {
  VKF_ASSIGN(const Tensor table, arguments.floats("table"));
  if (table.shape.size() != 2 || table.shape[0] != rows) {
    return arguments.error("table has shape " + shape_text(table.shape) + ", but must be (" +
                           std::to_string(rows) + ", H).");
  }
  const auto heads = static_cast<size_t>(table.shape[1]);
  if (heads * index.size() > static_cast<uint64_t>(kMostBiasElements)) {
    return arguments.error("The bias has " + std::to_string(heads) + " heads of " +
                           std::to_string(index.size()) + " elements, but may have at most " +
                           std::to_string(kMostBiasElements) + " in all.");
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

Result<Shape> bias_shape(const OperatorArguments& arguments) {
  Shape shape(2);
  VKF_ASSIGN(shape[0], arguments.attributes().get_int("query_length"));
  VKF_ASSIGN(shape[1], arguments.attributes().get_int("key_length"));
  const bool sane = shape[0] >= 0 && shape[1] >= 0 && shape[0] <= kMostBiasTokens &&
                    (shape[0] == 0 || shape[1] <= kMostBiasElements / shape[0]);
  if (sane) return shape;
  return arguments.error("query_length and key_length are " + shape_text(shape) +
                         ", but neither may be negative and their product at most " +
                         std::to_string(kMostBiasElements) + ".");
}

}  // namespace vkformer
