// `vkformer quantize`: reads a model directory, writes one with smaller matrices.
#pragma once

#include "checkpoint/checkpoint.h"
#include "vkformer/quantize.h"

namespace vkformer {

// quantize_model of the public API, where memory may run out.
Result<QuantizeReport> quantize_directory(const std::string& model, const std::string& target,
                                          const QuantizeOptions& options);

// Tensors of a checkpoint, and the bytes that they take.
QuantizeReport count_stored(const Checkpoint& checkpoint);

}  // namespace vkformer
