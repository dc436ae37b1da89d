#include "vkformer/benchmark.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "measure/benchmark_profile.h"
#include "measure/benchmarks.h"
#include "measure/kernel_statistics.h"
#include "measure/wake.h"

namespace vkformer {

Status wake_device(const Device& device) {
  return guarded([&] { return wake(HandleAccess::impl(device)); });
}

Result<Roofline> measure_roofline(const Device& device) {
  return guarded([&] { return run_roofline(HandleAccess::impl(device)); });
}

Result<GemmTime> benchmark_gemm(const Device& device, const GemmBenchmark& options) {
  return guarded([&]() -> Result<GemmTime> {
    auto run = run_gemm(HandleAccess::impl(device), options);
    if (!run) return run.error();
    return std::move(run->time);
  });
}

Result<EncoderTime> benchmark_encoder(const Device& device, const EncoderBenchmark& options) {
  return guarded([&]() -> Result<EncoderTime> {
    auto run = run_encoder(HandleAccess::impl(device), options);
    if (!run) return run.error();
    return std::move(run->time);
  });
}

Status start_profile(const Device& device) {
  return guarded([&] { return start_device_profile(HandleAccess::impl(device)); });
}

Result<Profile> take_profile(const Device& device) {
  return guarded([&] { return take_device_profile(HandleAccess::impl(device)); });
}

Result<std::vector<KernelStatistics>> kernel_statistics(const Device& device) {
  return guarded([&] { return read_kernel_statistics(HandleAccess::impl(device)); });
}

Status stop_profile(const Device& device) {
  return guarded([&] { return stop_device_profile(HandleAccess::impl(device)); });
}

}  // namespace vkformer
