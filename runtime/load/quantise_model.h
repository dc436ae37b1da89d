// `vkformer quantize`: reads a model directory, writes one with smaller matrices.
#pragma once

#include "checkpoint/checkpoint.h"
#include "vkformer/quantise.h"

namespace vkformer {

// quantise_model of the public API, where memory may run out.
Result<QuantiseReport> quantise_directory(const std::string& model, const std::string& target,
                                          const QuantiseOptions& options);

// Tensors of a checkpoint, and the bytes that they take.
QuantiseReport count_stored(const Checkpoint& checkpoint);

}  // namespace vkformer
