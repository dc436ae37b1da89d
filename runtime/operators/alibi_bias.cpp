#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/position_bias.h"
#include "ops/relative_positions.h"

namespace vkformer {

// alibi_bias (Tokens and positions)
// attributes: `num_heads`, `query_length`, `key_length`
// outputs:    slopes (H), bias (H, T, S)
// computes:   slope_h = 2^(−8(h+1)/H) for H a power of two, else those of the next lower power k,
//             then every second one of 2k; bias = slope · (j − i), the last query at the last key.
//             Computed on the host
Result<PreparedOperator> prepare_alibi_bias(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({}, {"num_heads", "query_length", "key_length"}));
  VKF_ASSIGN(const Shape shape, bias_shape(arguments));
  VKF_ASSIGN(const int64_t heads, arguments.integer_or("num_heads", 0, 1, 1 << 16));
  const int64_t pairs = shape[0] * shape[1];
  if (pairs > kMostBiasElements / heads) {
    return arguments.error("The bias of " + std::to_string(heads) + " heads over " +
                           shape_text(shape) + " has more than " +
                           std::to_string(kMostBiasElements) + " elements.");
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

}  // namespace vkformer
