// Examples of measurements, which take seconds and want the device for themselves.
#include <vkformer/benchmark.h>
#include <vkformer/estimate.h>
#include <vkformer/model_source.h>
#include <vkformer/tuning.h>

#include <cstdio>

#include "examples.h"

namespace {

vkformer::Status show_roofline(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const auto source = vkformer::ModelSource::directory(setting.models + "/shakespeare");
  //! [wake_device measure_roofline]
  // Lets the clock of the GPU rise, then measures what the device does at best.
  const auto awake = vkformer::wake_device(device);
  if (!awake) return awake.error();
  const auto roofline = vkformer::measure_roofline(device);
  if (!roofline) return roofline.error();
  std::printf("%.0f GFLOPS, %.0f GB/s\n", roofline->fma_gflops, roofline->copy_gbytes);
  //! [end]

  //! [estimated_gpus estimate_model]
  // Estimates a prompt of 32 tokens on GPUs that are not there, and on this device.
  vkformer::SessionSizes sizes;
  sizes.tokens = 32;
  for (const vkformer::EstimatedGpu& gpu : vkformer::estimated_gpus()) {
    const auto estimate = vkformer::estimate_model(gpu.chip, source, {}, sizes);
    if (!estimate) return estimate.error();
    std::printf("%s: %.3f ms\n", gpu.product.c_str(), estimate->first.ms);
  }
  const auto here = vkformer::estimate_model(device, *roofline, source, {}, sizes);
  if (!here) return here.error();
  std::printf("here: %.3f ms\n", here->first.ms);
  //! [end]
  return expect(here->first.ms > 0, "a time");
}

vkformer::Status show_benchmarks(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  //! [benchmark_operators benchmark_operator]
  // Times an operator at sizes of real models, the median of three runs each.
  for (const std::string& name : vkformer::benchmark_operators()) std::puts(name.c_str());
  const auto times = vkformer::benchmark_operator(device, "softmax", 3);
  if (!times) return times.error();
  for (const vkformer::OperatorTime& row : *times) {
    std::printf("%s %s: %.3f ms\n", row.model.c_str(), row.shapes.c_str(), row.ms_median);
  }
  //! [end]

  //! [benchmark_gemm benchmark_encoder]
  // Times one product of 64 rows, and an encoder of two small layers.
  vkformer::GemmBenchmark product;
  product.m = 64;
  product.n = product.k = 256;
  const auto gemm = vkformer::benchmark_gemm(device, product);
  if (!gemm) return gemm.error();
  vkformer::EncoderBenchmark small;
  small.tokens = 32;
  small.layers = 2;
  small.width = small.ffn = 128;
  small.heads = 2;
  const auto encoder = vkformer::benchmark_encoder(device, small);
  if (!encoder) return encoder.error();
  std::printf("%.3f ms and %.3f ms\n", gemm->ms_median, encoder->ms_median);
  //! [end]
  return expect(gemm->gflops > 0 && encoder->gflops > 0, "rates");
}

vkformer::Status show_tuner(const Setting&) {
  // Without a file of the user's that the tuner would replace, and at the tier of fewest kernels.
  vkformer::DeviceOptions few;
  few.tier = vkformer::Tier::kBaseline;
  few.cache_directory = "none";
  const auto device = vkformer::Device::create(few);
  if (!device) return device.error();
  //! [tune_device]
  // Takes a first look at which kernels are fastest here; the full effort takes minutes.
  vkformer::TuneOptions options;
  options.effort = vkformer::TuneOptions::Effort::kQuick;
  options.ms_per_choice = 0.01;
  const auto report = vkformer::tune_device(*device, options);
  if (!report) return report.error();
  for (const vkformer::TunedChoice& choice : report->choices) {
    std::printf("%s: %s in place of %s\n", choice.shape.c_str(), choice.winner.c_str(),
                choice.usual.c_str());
  }
  //! [end]
  return expect(!report->choices.empty(), "choices");
}

}  // namespace

vkformer::Status show_measurements(const Setting& setting) {
  for (const auto show : {show_roofline, show_benchmarks, show_tuner}) {
    const auto shown = show(setting);
    if (!shown) return shown;
  }
  return {};
}
