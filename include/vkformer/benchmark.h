// Benchmarks as API calls: the device's own roofline and single matrix products.
//
// Threading: independent calls; timings want the device for themselves. Lifetime: nothing outlives
// a call.
#pragma once

#include <string>

#include "vkformer/device.h"
#include "vkformer/export.h"

namespace vkformer {

// What the device does at best, measured by shaders that do nothing else.
struct Roofline {
  double fma_gflops = 0;   // f32 multiply-adds, two operations each, 10^9 per second
  double copy_gbytes = 0;  // bytes read plus written, 10^9 per second
  double dispatch_us = 0;  // one empty dispatch among many with barriers, microseconds
  double submit_us = 0;    // one submit and wait, microseconds
};
VKFORMER_API Result<Roofline> measure_roofline(const Device& device);

struct GemmBenchmark {
  int64_t m = 1024;               // rows
  int64_t n = 1024;               // output features
  int64_t k = 1024;               // input features
  std::string weights = "f32";    // storage: "f32" or "f16"
  std::string precision = "f32";  // arithmetic: "f32" or "f16"
  int repeats = 9;
};

struct GemmTime {
  double ms_median = 0;  // one product
  double ms_min = 0;
  double gflops = 0;   // 2 m n k over the median
  std::string kernel;  // the variant that ran
  std::string hash;    // of the output's bits, 16 hexadecimal digits
};
// y (m, n) = x (m, k) w, the weight packed as a model's is.
VKFORMER_API Result<GemmTime> benchmark_gemm(const Device& device, const GemmBenchmark& options);

struct EncoderBenchmark {
  int64_t tokens = 145;
  int64_t layers = 12;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t ffn = 3072;
  int repeats = 5;
};

struct EncoderTime {
  double ms_median = 0;
  double gflop = 0;   // operations of one pass, 10^9
  double gflops = 0;  // over the median
  int dispatches = 0;
  std::string hash;
};
// A pre-norm encoder stack of those sizes (ViT-B/32 at 384 pixels by default), random weights.
VKFORMER_API Result<EncoderTime> benchmark_encoder(const Device& device,
                                                   const EncoderBenchmark& options);

}  // namespace vkformer
