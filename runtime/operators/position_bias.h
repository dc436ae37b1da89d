// Biases of scores by position that are made on the host: alibi_bias, t5_relative_position and
// swin_relative_position.
#pragma once

#include "operators/operator_arguments.h"

namespace vkformer {

inline constexpr int64_t kMostBiasElements = int64_t{1} << 28;
inline constexpr int64_t kMostBiasTokens = int64_t{1} << 28;

// bias[h, i] = table[index[i], h] with the input table (rows, H) and index (shape) -> (H, shape).
Result<Tensor> looked_up(const OperatorArguments& arguments, const std::vector<uint32_t>& index,
                         int64_t rows, const Shape& shape);

// (T, S) of a bias, from the attributes query_length and key_length.
Result<Shape> bias_shape(const OperatorArguments& arguments);

}  // namespace vkformer
