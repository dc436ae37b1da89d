#include <algorithm>

#include "base/check.h"
#include "measure/benchmarks.h"
#include "measure/multiply_adds.h"
#include "measure/timed_plan.h"
#include "measure/wake.h"
#include "params/fill.h"
#include "params/roofline.h"

namespace vkformer {
namespace {

constexpr int kRepeats = 9;  // the best one counts

uint32_t add_buffer(Plan& plan, std::string name, uint64_t bytes) {
  plan.buffers.push_back(
      {.name = std::move(name), .source = BufferSource::kExternal, .bytes = bytes});
  return static_cast<uint32_t>(plan.buffers.size() - 1);
}

// Four sums of a subgroup of roofline_units.
MultiplyAdds units_work(const DeviceCaps& caps, const MatrixUnit& unit) {
  const MultiplyAddsLaunch launch = multiply_adds_launch(caps);
  const double subgroups = static_cast<double>(launch.local_size) / caps.unit_lanes * launch.groups;
  return {
      KernelId::roofline_units__f16_matrix,
      constants(RooflineUnitsConstants{
          .local_size = launch.local_size, .unit_m = unit.m, .unit_n = unit.n, .unit_k = unit.k}),
      2.0 * 4 * unit.m * unit.n * unit.k * subgroups};
}

Result<double> fma_gflops(const std::shared_ptr<VulkanDevice>& device, const MultiplyAdds& work) {
  constexpr double kLongEnoughMs = 25;
  constexpr uint32_t kMostIterations = 1u << 20;
  uint32_t iterations = 1;
  for (;;) {
    VKF_ASSIGN(const TimedPlan plan,
               TimedPlan::create(device,
                                 multiply_adds_plan(device->caps(), work, iterations,
                                                    MultiplyAddsLength::kAtOnce),
                                 RecordingInputs::Profile::kOn));
    // The very first run may compile, and a busy machine may stretch one.
    std::vector<RunTime> probes;
    for (int i = 0; i < 3; ++i) {
      VKF_ASSIGN(const RunTime time, plan.run());
      probes.push_back(time);
    }
    const double probe = least_time(probes, &RunTime::device);
    if (probe >= kLongEnoughMs || iterations >= kMostIterations) {
      VKF_ASSIGN(const std::vector<RunTime> times, plan.run_warm(kRepeats));
      const double ms = least_time(times, &RunTime::device);
      return work.operations * iterations * 1e-6 / ms;
    }
    const double growth = std::clamp(1.2 * kLongEnoughMs / probe, 2.0, 8.0);
    iterations = std::min(kMostIterations, static_cast<uint32_t>(iterations * growth));
  }
}

Result<double> copy_gbytes(const std::shared_ptr<VulkanDevice>& device) {
  const DeviceCaps& caps = device->caps();
  const uint32_t local_size = multiply_adds_launch(caps).local_size;
  const uint64_t per_group = uint64_t{local_size} * 4 * 16;  // bytes
  // Beyond the caches of most devices, within the limits of all.
  const uint64_t wanted = std::min<uint64_t>(
      {64ull << 20, caps.limits.max_storage_range, device->info().memory_bytes / 8});
  const uint64_t groups = std::min<uint64_t>(wanted / per_group, caps.limits.max_group_count[0]);
  if (groups == 0) {
    return unsupported("[roofline] This device has too little memory to measure a copy.");
  }
  Plan plan;
  Dispatch d;
  d.kernel = caps.int64() ? KernelId::roofline_copy__f32_int64 : KernelId::roofline_copy__f32;
  d.label = "roofline copy";
  d.bindings = {{add_buffer(plan, "roofline from", groups * per_group), Access::kRead},
                {add_buffer(plan, "roofline to", groups * per_group), Access::kWrite}};
  d.set_constants(WorkgroupConstants{local_size});
  d.groups = {static_cast<uint32_t>(groups), 1, 1};
  plan.dispatches.push_back(std::move(d));
  VKF_ASSIGN(const TimedPlan timed,
             TimedPlan::create(device, std::move(plan), RecordingInputs::Profile::kOn));
  VKF_ASSIGN(const std::vector<RunTime> times, run_awake(device, timed, kRepeats));
  return 2e-6 * static_cast<double>(groups * per_group) / least_time(times, &RunTime::device);
}

// Dispatches of one word each: all the same word, so that each must wait for the one before, or
// each its own.
enum class Words : uint8_t { kSame, kOwn };

Plan chain_plan(const DeviceCaps& caps, uint32_t dispatches, Words words) {
  constexpr uint64_t kAligned = 256;
  const uint64_t step = std::max<uint64_t>(kAligned, caps.limits.storage_alignment);
  Plan plan;
  Dispatch d;
  d.kernel = KernelId::fill_words__u32;
  d.label = "roofline dispatch";
  d.set_constants(WorkgroupConstants{std::clamp(caps.subgroup_size, 4u, 64u)});
  d.set_push(FillParams{1, 0});
  for (uint32_t i = 0; i < dispatches; ++i) {
    if (i == 0 || words == Words::kOwn) {
      plan.buffers.push_back({.name = "roofline word", .bytes = 16, .offset = plan.arena_bytes});
      plan.arena_bytes += step;
    }
    d.bindings = {{static_cast<uint32_t>(plan.buffers.size() - 1), Access::kWrite}};
    plan.dispatches.push_back(d);
  }
  plan_barriers(plan);
  return plan;
}

// Microseconds of a submit and wait, by the wall clock.
Result<double> chain_us(const std::shared_ptr<VulkanDevice>& device, uint32_t dispatches,
                        Words words, int repeats) {
  VKF_ASSIGN(const TimedPlan plan,
             TimedPlan::create(device, chain_plan(device->caps(), dispatches, words),
                               RecordingInputs::Profile::kOff));
  VKF_ASSIGN(const std::vector<RunTime> times, plan.run_warm(repeats));
  return 1e3 * median_time(times, &RunTime::wall);
}

}  // namespace

Result<Roofline> run_roofline(const std::shared_ptr<VulkanDevice>& device) {
  if (!device) return invalid_argument("[roofline] The device is empty; make a Device first.");
  constexpr uint32_t kChain = 512;  // dispatches
  Roofline roofline;
  VKF_CHECK(wake(device));
  VKF_ASSIGN(roofline.fma_gflops,
             fma_gflops(device, multiply_adds(device->caps(), KernelId::roofline_fma__f32)));
  VKF_ASSIGN(roofline.fma_int_gops,
             fma_gflops(device, multiply_adds(device->caps(), KernelId::roofline_fma__u32)));
  if (device->caps().fp16()) {
    VKF_ASSIGN(roofline.fma_f16_gflops,
               fma_gflops(device, multiply_adds(device->caps(), KernelId::roofline_fma__f16_fp16)));
  }
  for (const MatrixUnit& unit : device->caps().matrix_units) {
    if (!device->caps().matrix()) break;
    VKF_ASSIGN(const double gflops, fma_gflops(device, units_work(device->caps(), unit)));
    roofline.units_gflops = std::max(roofline.units_gflops, gflops);
  }
  VKF_ASSIGN(roofline.copy_gbytes, copy_gbytes(device));
  VKF_ASSIGN(roofline.submit_us, chain_us(device, 1, Words::kSame, 51));
  VKF_ASSIGN(const double apart, chain_us(device, kChain, Words::kOwn, 9));
  VKF_ASSIGN(const double chain, chain_us(device, kChain, Words::kSame, 9));
  // A chain that took no longer than one dispatch was measured on a busy machine; then its share is
  // an upper bound.
  roofline.dispatch_us =
      apart > roofline.submit_us ? (apart - roofline.submit_us) / (kChain - 1) : apart / kChain;
  roofline.barrier_us = std::max(0.0, (chain - apart) / (kChain - 1));
  return roofline;
}

}  // namespace vkformer
