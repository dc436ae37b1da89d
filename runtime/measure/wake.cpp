#include "measure/wake.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "measure/multiply_adds.h"

namespace vkformer {
namespace {

constexpr double kShortMs = 5;  // a run below this becomes longer
constexpr double kAimMs = 8;
constexpr uint32_t kMostWakingIterations = 1u << 20;
constexpr size_t kSteadyRuns = 4;
constexpr double kFaster = 0.98;  // a run that takes less of the time before is faster

bool is_long_enough(uint32_t iterations, double ms) {
  return ms >= kShortMs || iterations >= kMostWakingIterations;
}

// Iterations for a run of about kAimMs, from a run of `iterations` that took `ms`.
uint32_t longer(uint32_t iterations, double ms) {
  const double growth = std::clamp(kAimMs / std::max(ms, 1e-3), 1.25, 8.0);
  return static_cast<uint32_t>(
      std::min<double>(kMostWakingIterations, std::ceil(iterations * growth)));
}

}  // namespace

bool is_steady(std::span<const double> times) {
  if (times.size() < 2 * kSteadyRuns) return false;
  const auto last = times.last(kSteadyRuns), before = times.first(times.size() - kSteadyRuns);
  return *std::min_element(last.begin(), last.end()) >=
         kFaster * *std::min_element(before.begin(), before.end());
}

Status wake(const std::shared_ptr<VulkanDevice>& device, const WakeTimes& times) {
  if (!device) return invalid_argument("[wake] The device is empty; make a Device first.");
  const DeviceCaps& caps = device->caps();
  if (caps.device_class == DeviceClass::kSoftware) return {};
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [begin] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  const MultiplyAdds work = multiply_adds(caps, KernelId::roofline_fma__f32);
  std::vector<double> per_iteration;  // milliseconds, of every run
  const auto is_done = [&] {
    return spent() >= times.most || (spent() >= times.least && is_steady(per_iteration));
  };
  for (uint32_t iterations = 1; !is_done();) {
    VKF_ASSIGN(const TimedPlan plan,
               TimedPlan::create(
                   device, multiply_adds_plan(caps, work, iterations, MultiplyAddsLength::kSplit),
                   RecordingInputs::Profile::kOn));
    double ms = 0;
    do {
      VKF_ASSIGN(const RunTime time, plan.run());
      ms = time.device;
      per_iteration.push_back(ms / iterations);
    } while (is_long_enough(iterations, ms) && !is_done());
    if (!is_long_enough(iterations, ms)) iterations = longer(iterations, ms);
  }
  return {};
}

Result<std::vector<RunTime>> run_awake(const std::shared_ptr<VulkanDevice>& device,
                                       const TimedPlan& plan, int repeats) {
  VKF_CHECK(plan.run());
  VKF_CHECK(wake(device));
  return plan.run_warm(repeats);
}

}  // namespace vkformer
