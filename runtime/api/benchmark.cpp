#include "vkformer/benchmark.h"

#include "base/guarded.h"
#include "measure/benchmark_profile.h"
#include "measure/benchmarks.h"

namespace vkformer {

Result<Roofline> measure_roofline(const Device& device) {
  return guarded([&] { return run_roofline(device.impl()); });
}

Result<GemmTime> benchmark_gemm(const Device& device, const GemmBenchmark& options) {
  return guarded([&]() -> Result<GemmTime> {
    auto run = run_gemm(device.impl(), options);
    if (!run) return run.error();
    return std::move(run->time);
  });
}

Result<EncoderTime> benchmark_encoder(const Device& device, const EncoderBenchmark& options) {
  return guarded([&]() -> Result<EncoderTime> {
    auto run = run_encoder(device.impl(), options);
    if (!run) return run.error();
    return std::move(run->time);
  });
}

Status start_profile(const Device& device) {
  return guarded([&] { return start_device_profile(device.impl()); });
}

Result<Profile> take_profile(const Device& device) {
  return guarded([&] { return take_device_profile(device.impl()); });
}

Status stop_profile(const Device& device) {
  return guarded([&] { return stop_device_profile(device.impl()); });
}

}  // namespace vkformer
