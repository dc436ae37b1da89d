#include "vkformer/benchmark.h"

#include "measure/benchmark_profile.h"
#include "measure/benchmarks.h"

namespace vkformer {

Result<Roofline> measure_roofline(const Device& device) {
  return run_roofline(device.impl());
}

Result<GemmTime> benchmark_gemm(const Device& device, const GemmBenchmark& options) {
  auto run = run_gemm(device.impl(), options);
  if (!run) return run.error();
  return std::move(run->time);
}

Result<EncoderTime> benchmark_encoder(const Device& device, const EncoderBenchmark& options) {
  auto run = run_encoder(device.impl(), options);
  if (!run) return run.error();
  return std::move(run->time);
}

Status start_profile(const Device& device) {
  return start_device_profile(device.impl());
}

Result<Profile> take_profile(const Device& device) {
  return take_device_profile(device.impl());
}

Status stop_profile(const Device& device) {
  return stop_device_profile(device.impl());
}

}  // namespace vkformer
