// Single operators on the GPU, by name: for tests of a device, for experiments, and for bindings.
//
// Threading: calls are independent; a Device may be shared. Lifetime: nothing outlives the call.
#pragma once

#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/tensor.h"

namespace vkformer {

// One application of an operator: its name, its attributes as a JSON object, its named inputs.
// Names, attributes and shapes are those of docs/operators.md.
struct OperatorCall {
  std::string name;                    // "gemm", "attention", "layer_norm", ...
  std::string attributes_json = "{}";  // {"causal": true}
  TensorMap inputs;                    // {"Q": ..., "K": ..., "V": ...}
};

struct OperatorOptions {
  Precision precision = Precision::kF32;
  // How weight-like inputs (the right side of gemm) are stored; kAsStored is an error.
  WeightFormat weights = WeightFormat::kF32;
  // Runs; every one must give the same bits.
  int repeats = 1;
  // Fill outputs and temporaries with NaN before each run.
  bool poison = false;
};

struct OperatorResult {
  TensorMap outputs;           // by the operator's output names
  double milliseconds = 0;     // median device time of a run
  uint64_t scratch_bytes = 0;  // device memory beyond inputs and outputs
  int dispatches = 0;
  double flops = 0;  // of all dispatches, an upper bound where masks hide pairs
  double bytes = 0;  // that they read and write, likewise
};

// Runs it. ErrorCode::kUnsupported if the operator is not known.
VKFORMER_API Result<OperatorResult> run_operator(const Device& device, const OperatorCall& call,
                                                 const OperatorOptions& options = {});
// The names run_operator knows.
VKFORMER_API std::vector<std::string> operator_names();

}  // namespace vkformer
