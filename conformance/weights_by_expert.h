// Weights of experts, or of heads, among a check's inputs.
#pragma once

#include "conformance/content.h"
#include "ops/experts.h"

namespace vkformer::conformance {

// Matrices (X, K, N) and biases (X, N), or none, as operators take them: each expert's columns
// filled up to whole panels. With `slice_panels` > 0 the columns are slices of up to that many
// panels, each in its own binding.
Result<ExpertWeight> bind_experts(CheckCase& made, const std::string& name, const Array& w,
                                  const Array& bias, MatrixFormat format, int64_t slice_panels = 0);

}  // namespace vkformer::conformance
