// What the parts of `vkformer bench` share.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "command_line.h"

namespace vkformer::cli {

double median(std::vector<double> values);

// bench_gemm.cpp

// Share of what the device can do at a product's ratio of operations to bytes.
double gemm_roofline_share(const GemmBenchmark& shape, const GemmTime& time,
                           const Roofline& roofline);
int run_bench_gemm(const CommonOptions& common, const GemmBenchmark& shape);
int run_bench_encoder(const CommonOptions& common, const EncoderBenchmark& shape);
// Matrix products, the encoder and, if it is installed, the ratio to OpenBLAS.
Status add_gemm_rows(const Device& device, const Roofline& roofline, std::vector<BenchRow>& rows);

// bench_decode.cpp

// Decoding at batch 1.
struct DecodeTime {
  double cpu_us_per_token = 0;  // of the calling thread
  double tokens_per_second = 0;
  int64_t tokens = 0;        // generated while measuring
  double start_cold_ms = 0;  // process start to first token, empty pipeline cache
  double start_warm_ms = 0;  // the same once the cache is filled
};
struct DecodeOptions {
  std::string model;
  std::vector<std::string> texts;
  ModelOptions load;
  int seconds = 2;  // to measure
  bool start_only = false;
};
Result<DecodeTime> measure_decode(const CommonOptions& common, const Device& device,
                                  const DecodeOptions& options);
int run_bench_decode(const CommonOptions& common, const DecodeOptions& options);

}  // namespace vkformer::cli
