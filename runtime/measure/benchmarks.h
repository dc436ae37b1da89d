// The benchmarks of vkformer/benchmark.h. Every input is random from fixed seeds, so that a
// hash names a device's arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "vkformer/benchmark.h"
#include "vulkan/device.h"

namespace vkformer {

Result<Roofline> run_roofline(const std::shared_ptr<VulkanDevice>& device);

// A product and what it was made of, for tests that look at the numbers.
struct GemmRun {
  GemmTime time;
  std::vector<float> y;  // (M, N)
};
Result<GemmRun> run_gemm(const std::shared_ptr<VulkanDevice>& device, const GemmBenchmark& options);

struct EncoderRun {
  EncoderTime time;
  std::vector<float> y;  // (T, D)
};
Result<EncoderRun> run_encoder(const std::shared_ptr<VulkanDevice>& device,
                               const EncoderBenchmark& options);

}  // namespace vkformer
