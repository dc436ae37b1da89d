#include "base/check.h"
#include "operators/operator_adaptors.h"
#include "operators/position_bias.h"
#include "ops/relative_positions.h"

namespace vkformer {

// t5_relative_position (Tokens and positions)
// attributes: `query_length`, `key_length`, `query_offset` (0), `num_buckets` (32), `max_distance`
//             (128), `bidirectional` (true)
// inputs:     table (buckets, H)
// outputs:    buckets (T, S) I64, bias (H, T, S)
// computes:   see below. Computed on the host
Result<PreparedOperator> prepare_t5_relative_position(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names({"table"}, {"query_length", "key_length", "query_offset",
                                              "num_buckets", "max_distance", "bidirectional"}));
  VKF_ASSIGN(const Shape shape, bias_shape(arguments));
  VKF_ASSIGN(const int64_t offset,
             arguments.integer_or("query_offset", 0, -kMostBiasTokens, kMostBiasTokens));
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

}  // namespace vkformer
