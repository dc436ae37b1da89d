#include "recording/device_speed.h"

#include <algorithm>
#include <chrono>

#include "ops/matmul.h"
#include "recording/recorded_graph.h"

namespace vkformer {

Result<double> product_speed(const std::shared_ptr<VulkanDevice>& device) {
  constexpr int64_t kRows = 16;     // M
  constexpr int64_t kWidth = 2048;  // K and N
  constexpr size_t kTimes = 4;      // in one submit, whose own cost counts less that way
  Graph graph;
  const TensorId a = graph.add_external("a", DType::kF32, {kRows, kWidth});
  const TensorId b = graph.add_external("b", DType::kF32, {kWidth, kWidth});
  VKF_ASSIGN(const TensorId y, add_matmul(graph, a, b, kNoTensor, {}));
  graph.tensor(y).kind = TensorKind::kExternal;
  graph.tensor(y).name = "y";
  PassMemory memory(device);
  VKF_ASSIGN(const RecordedGraph recorded, RecordedGraph::create(memory, std::move(graph), {}));
  const std::vector<RecordingRange> ranges(kTimes, recorded.all());
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    VKF_CHECK(memory.submit(ranges, {}));
    VKF_CHECK(memory.wait());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    const double flops = 2.0 * kRows * kWidth * kWidth * kTimes;
    // The first time is one of warming up.
    if (i > 0) best = std::max(best, flops / std::max(taken.count(), 1e-9) / 1e9);
  }
  return best;
}

}  // namespace vkformer
