// What tells the inputs of requests apart, so that keys are reused for the same ones alone.
#pragma once

#include <span>
#include <string>

#include "vkformer/tensor.h"

namespace vkformer {

// SHA-256, 32 bytes, of every name, type, shape and byte of the tensors, and of the tokens.
std::string input_content(const TensorMap& tensors, std::span<const int64_t> tokens = {});

}  // namespace vkformer
