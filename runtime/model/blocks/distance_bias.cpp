#include "model/blocks/distance_bias.h"

#include "base/message.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostDistanceBiases = 1 << 24;

// The distance from which on all share the last bucket.
int64_t reach_of(const T5Buckets& t5) {
  const auto bucket = [&](int64_t n) { return std::pair(t5_bucket(-n, t5), t5_bucket(n, t5)); };
  int64_t reach = t5.max_distance;
  while (reach > 1 && bucket(reach - 1) == bucket(reach)) --reach;
  return reach;
}

}  // namespace

Status read_distance_bias(const Checkpoint& checkpoint, const BucketTable& table,
                          StackConfig& stack) {
  const T5Buckets& t5 = table.t5;
  const int64_t rows = table.rows > 0 ? table.rows : t5.buckets;
  VKF_ASSIGN(std::vector<float> biases, read_floats(checkpoint, table.tensor, {rows, stack.heads}));
  const int64_t reach = reach_of(t5);
  const int64_t distances = 2 * reach + 1;
  if (distances * stack.heads > kMostDistanceBiases) {
    return unsupported(
        message({"[relative_attention_max_distance] gives ", distances, " biases for each of ",
                 stack.heads, " heads, but at most ", kMostDistanceBiases, " in all are kept"}));
  }
  stack.distance.reach = reach;
  stack.distance.values.resize(static_cast<size_t>(distances * stack.heads));
  for (int64_t d = -reach; d <= reach; ++d) {
    const int64_t row = t5_bucket(d, t5) * stack.heads;
    for (int64_t h = 0; h < stack.heads; ++h) {
      stack.distance.values[static_cast<size_t>(h * distances + d + reach)] =
          biases[static_cast<size_t>(row + h)];
    }
  }
  return {};
}

}  // namespace vkformer
