// Bringing a device to its clock: never on software devices, in bounded time and bounded dispatches
// elsewhere.
#include "measure/wake.h"

#include <vector>

#include "plan/slicing.h"
#include "support/test_device.h"
#include "vkformer/benchmark.h"
#include "vulkan/device_impl.h"
#include "vulkan/dispatch_profiler.h"

using namespace vkformer;

namespace {

class CountedRuns : public DispatchProfiler {
 public:
  explicit CountedRuns(double max_flops) : max_flops_(max_flops) {}
  uint32_t recorded(const Plan& plan) override {
    for (const PlanPiece& piece : all_pieces(plan, max_flops_)) {
      CHECK(piece.part.flops > 0);
      CHECK(piece.part.flops <= max_flops_);
    }
    return 1;
  }
  void finished(const Ran&, std::span<const Recording::Span>, double) override { ++runs; }
  int runs = 0;

 private:
  double max_flops_;
};

// Runs of a wake of a device of that class; that it comes back is part of the test.
int runs_of_wake(DeviceClass device_class, bool timestamps, const WakeTimes& times) {
  auto made = VulkanDevice::create_tweaked(test_device_options(), test_device_tweaks());
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  const std::shared_ptr<VulkanDevice> device = *made;
  Context& context = device->impl().context;
  context.caps.device_class = device_class;
  if (!timestamps) context.timestamp_bits = 0;
  const auto counted = std::make_shared<CountedRuns>(context.caps.max_dispatch_flops);
  device->set_profiler(counted);
  const Status status = wake(device, times);
  device->set_profiler(nullptr);
  CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
  return counted->runs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a clock is steady once runs get no faster") {
    CHECK_FALSE(is_steady({}));
    CHECK_FALSE(is_steady(std::vector<double>(7, 1.0)));
    CHECK(is_steady(std::vector<double>(8, 1.0)));
    CHECK(is_steady(std::vector<double>{9, 5, 2, 1, 1.2, 1, 1.1, 0.99}));
    CHECK_FALSE(is_steady(std::vector<double>{9, 5, 2, 1, 1, 1, 1, 0.97}));
    CHECK_FALSE(is_steady(std::vector<double>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
    // One that was interrupted does not count.
    CHECK(is_steady(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 20}));
  }

  TEST_CASE("waking without a device is an error") {
    const Status status = wake(nullptr);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == ErrorCode::kInvalidArgument);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a software device is not woken") {
    if (!have_test_device()) return;
    CHECK(runs_of_wake(DeviceClass::kSoftware, true, {}) == 0);
    CHECK(wake_device(*test_device()).ok());
  }

  TEST_CASE("a GPU is kept busy for bounded time, with timestamps and without") {
    if (!have_test_device()) return;
    for (const bool timestamps : {true, false}) {
      CHECK(runs_of_wake(DeviceClass::kDiscrete, timestamps, {.least = 1, .most = 300}) > 0);
      // The limit counts even if the clock has not become steady.
      CHECK(runs_of_wake(DeviceClass::kIntegrated, timestamps, {.least = 0, .most = 0}) == 0);
    }
  }
}
