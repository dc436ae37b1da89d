// Benchmarks as API calls: the device's own roofline, every operator at real sizes, single matrix
// products, and the time of every dispatch of whatever runs.
//
// Threading: independent calls; timings want the device for themselves. Lifetime: nothing outlives
// a call, but for a profile between its start and its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/export.h"

namespace vkformer {

// Keeps a GPU busy until its clock has stopped to rise, 0.3 to 2 seconds. Call it before times are
// taken, once pipelines are made. A GPU without load falls to a fraction of its clock. The
// benchmarks below do so themselves. Nothing happens on a software device.
VKFORMER_API Status wake_device(const Device& device);

// What the device does at best, measured by shaders that do nothing else.
struct Roofline {
  double fma_gflops = 0;      // f32 multiply-adds, two operations each, 10^9 per second
  double fma_f16_gflops = 0;  // the same in f16; 0 below tier fp16
  double units_gflops = 0;    // f16 products with f32 sums by matrix units; 0 below tier matrix
  double fma_int_gops = 0;    // the same of 32-bit integers
  double copy_gbytes = 0;     // bytes read plus written, 10^9 per second
  double dispatch_us = 0;     // one empty dispatch among many that may overlap, microseconds
  double barrier_us = 0;      // what a barrier before each of them adds
  double submit_us = 0;       // one submit and wait, microseconds
};
VKFORMER_API Result<Roofline> measure_roofline(const Device& device);

// One operator at one real model's sizes; the rows are in conformance/cases.
struct OperatorTime {
  std::string op;        // operators are those of the runtime, ops/op_list.def
  std::string model;     // whose sizes these are
  std::string shapes;    // the inputs' names and sizes, or the numbers that a step is made of
  std::string kernels;   // the variants that ran, in order, separated by spaces
  int dispatches = 0;    // of one run
  double ms_median = 0;  // one run, by the device's clock where it has one
  double ms_min = 0;     //
  double flops = 0;      // operations of one run
  double bytes = 0;      // read plus written
  std::string hash;      // of the outputs' bits, 16 hexadecimal digits
  std::string reason;    // why the operator stays far from the roofline by its nature, or empty
};
// The operators, in the order of the runtime's list; each has a row in the table.
VKFORMER_API std::vector<std::string> benchmark_operators();
// Every row of one operator; the rows' runs take turns, `rounds` of them each.
VKFORMER_API Result<std::vector<OperatorTime>> benchmark_operator(const Device& device,
                                                                  const std::string& op,
                                                                  int rounds = 9);

struct GemmBenchmark {
  int64_t m = 1024;                           // rows
  int64_t n = 1024;                           // output features
  int64_t k = 1024;                           // input features
  WeightFormat weights = WeightFormat::kF32;  // kAsStored is an error: there is no file
  Precision precision = Precision::kF32;
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

// One dispatch of a profile.
struct ProfiledDispatch {
  int submit = 0;           // which submit it was part of, from 0
  std::string op;           // operator
  std::string label;        // where in the model
  std::string kernel;       // variant
  std::string shapes;       // of its tensors: "(2,5,64) (64,64) -> (2,5,64)"
  double start_us = 0;      // since the first one began
  double microseconds = 0;  // 0 where the device has no timestamps
  double flops = 0;         // upper bounds, where a size is only known on the GPU
  double bytes = 0;
};
struct Profile {
  std::vector<ProfiledDispatch> dispatches;  // in the order in which they ran
  std::vector<double> submit_us;             // of every submit, by the host's clock
  bool device_clock = false;  // false: no timestamps; a submit's time is shared out by flops, bytes
};
// From here on every dispatch is timed, of sessions and tasks whose first run of a shape comes
// after this call. Each pass is then submitted and waited for by itself, and nothing else may use
// the device. An error if a profile is being taken already.
VKFORMER_API Status start_profile(const Device& device);
// What ran since the start, or since the last call; goes on.
VKFORMER_API Result<Profile> take_profile(const Device& device);
// Ends it.
VKFORMER_API Status stop_profile(const Device& device);

// What the driver's compiler says of one kernel with one set of constants. Numbers count what the
// driver counts, in its units; what it does not state is absent.
struct CompilerStatistics {
  std::optional<double> instructions;
  std::optional<double> registers;      // of one invocation or subgroup
  std::string register_unit;            // "VGPRs", "32-bit registers"
  std::optional<double> spills;         // values written to memory because registers ran out
  std::optional<double> fills;          // the reads of them
  std::optional<double> scratch_bytes;  // private memory, of one invocation or subgroup
  std::optional<double> shared_bytes;   // of a workgroup
  std::optional<double> occupancy;      // how much a core can have in flight at once
  std::string occupancy_unit;           // "subgroups per SIMD", "warps per SM"
  std::optional<double> cycles;         // estimated, loops counted once or as the driver estimates
  std::optional<double> code_bytes;
};
// One executable of a pipeline; a driver may compile several, for several sizes of subgroups.
struct KernelStatistics {
  std::string kernel;               // variant, as in ProfiledDispatch
  std::vector<uint32_t> constants;  // its specialization constants, in the order of their ids
  std::string executable;           // the driver's name for it
  uint32_t subgroup_size = 0;       // that it was compiled for; 0: the driver does not say
  double compile_ms = 0;            // of the pipeline; short where a cache has it
  CompilerStatistics statistics;
  std::vector<std::pair<std::string, double>> raw;  // every statistic by the driver's own name
};
// Of every pipeline that the device has made, for devices made with DeviceOptions::statistics.
// Where the driver lacks VK_KHR_pipeline_executable_properties: kUnsupported, in a sentence.
VKFORMER_API Result<std::vector<KernelStatistics>> kernel_statistics(const Device& device);

}  // namespace vkformer
