// Estimates: how long a model's passes would take on a GPU that is not there. They use its data
// sheet and the statistics of the kernels that its driver's compiler made. Part of the library
// vkformer_conformance.
//
// No estimate was measured. docs/gpus.md says how they are made, and how far they are off where
// something could be measured.
//
// Threading: independent calls. Lifetime: nothing outlives a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vkformer/benchmark.h"
#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"

namespace vkformer {

// A GPU of which there is a data sheet, and compiled kernels.
struct EstimatedGpu {
  std::string chip;     // "navi31": what estimate_model takes
  std::string product;  // "Radeon RX 7900 XTX": whose clock and memory the numbers are of
  std::string target;   // "radv-newest:navi31": the driver that compiled, as tools/drivers names it
  double fma_gflops = 0;  // f32 multiply-adds by the data sheet, two operations each, 10^9 a second
  double gbytes = 0;      // of memory, 10^9 bytes a second
};
VKFORMER_API std::vector<EstimatedGpu> estimated_gpus();

// What all dispatches of one kernel would take.
struct EstimatedKernel {
  std::string kernel;  // variant
  int dispatches = 0;
  double ms = 0;
  // Another pipeline of that kernel, or none of it, was compiled for this GPU: "" where this one
  // was.
  std::string assumed;
};

// A pass, in milliseconds. The parts sum up to `ms`: a dispatch belongs to the term that bounds it.
struct EstimatedPass {
  double ms = 0;
  double arithmetic_ms = 0;  // by the issue slots of inner loops
  double bandwidth_ms = 0;   // by bytes
  double latency_ms = 0;     // by loads that too few subgroups wait for at a time
  double launch_ms = 0;      // of all dispatches
  int dispatches = 0;
  double flops = 0;  // as the plan has them: upper bounds
  double bytes = 0;
  std::vector<EstimatedKernel> kernels;  // the longest first
};

struct ModelEstimate {
  std::string device;  // product, or the device's name
  std::string driver;  // its name and version
  Tier tier = Tier::kBaseline;
  EstimatedPass first;                // the forward pass, or the prompt of a generation
  std::optional<EstimatedPass> step;  // one step of a generation
};
// For a GPU by its chip. Errors: a chip without a data sheet, with the chips that have one; those
// of loading the model and of planning it.
VKFORMER_API Result<ModelEstimate> estimate_model(const std::string& chip,
                                                  const ModelSource& source,
                                                  const ModelOptions& options,
                                                  const SessionSizes& sizes);
// For a device that is there, by its measured roofline in place of a data sheet. Without compiled
// kernels, every operation takes what a multiply-add takes. A comparison with measured times tells
// how good the model of time is.
VKFORMER_API Result<ModelEstimate> estimate_model(const Device& device, const Roofline& roofline,
                                                  const ModelSource& source,
                                                  const ModelOptions& options,
                                                  const SessionSizes& sizes);

}  // namespace vkformer
