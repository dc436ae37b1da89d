#include "recording/device_speed.h"

#include <algorithm>
#include <chrono>

#include "ops/matmul.h"
#include "recording/recorded_graph.h"

namespace vkformer {
namespace {

// One product of a row with a square matrix, recorded once.
class Product {
 public:
  static Result<Product> create(const std::shared_ptr<VulkanDevice>& device, int64_t width) {
    Graph graph;
    const TensorId a = graph.add_external("a", DType::kF32, {1, width});
    const TensorId b = graph.add_external("b", DType::kF32, {width, width});
    VKF_ASSIGN(const TensorId y, add_matmul(graph, a, b, kNoTensor, {}));
    graph.tensor(y).kind = TensorKind::kExternal;
    graph.tensor(y).name = "y";
    Product product;
    product.memory_ = std::make_unique<PassMemory>(device);
    VKF_ASSIGN(product.recorded_, RecordedGraph::create(*product.memory_, std::move(graph), {}));
    return product;
  }

  // Seconds of one submit that holds it `times` times.
  Result<double> seconds(size_t times) {
    constexpr int kTries = 4;
    const std::vector<RecordingRange> ranges(times, recorded_->all());
    double best = 0;
    for (int i = 0; i < kTries; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      VKF_CHECK(memory_->submit(ranges, {}));
      VKF_CHECK(memory_->wait());
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      // The first time is one of warming up.
      if (i == 1 || (i > 1 && taken.count() < best)) best = taken.count();
    }
    return best;
  }

 private:
  std::unique_ptr<PassMemory> memory_;
  std::optional<RecordedGraph> recorded_;
};

}  // namespace

Result<DeviceSpeed> measure_speed(const std::shared_ptr<VulkanDevice>& device) {
  constexpr int64_t kSmall = 8;
  constexpr size_t kManyLaunches = 65;
  constexpr int64_t kWidth = 2048;  // 16 MiB: more than most caches hold
  constexpr size_t kReads = 4;
  constexpr double kLeast = 1e-9;  // of a clock that stands still
  VKF_ASSIGN(Product small, Product::create(device, kSmall));
  VKF_ASSIGN(const double one, small.seconds(1));
  VKF_ASSIGN(const double many, small.seconds(kManyLaunches));
  DeviceSpeed speed;
  speed.launch = std::max(0.0, (many - one) / (kManyLaunches - 1));
  speed.submit = std::max(0.0, one - speed.launch);
  VKF_ASSIGN(Product large, Product::create(device, kWidth));
  VKF_ASSIGN(const double reading, large.seconds(kReads));
  const double own = std::max(reading - speed.submit - kReads * speed.launch, kLeast);
  speed.read_rate = static_cast<double>(kReads * sizeof(float) * kWidth * kWidth) / own;
  return speed;
}

}  // namespace vkformer
