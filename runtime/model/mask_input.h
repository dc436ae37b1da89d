// Attention masks as callers give them.
#pragma once

#include <string>
#include <vector>

#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The elements of a mask of integers: 1 = a token is attended, 0 = it is masked. Any other value is
// an error that names it: additive masks (0 and -10000) and types of attention mean something else.
Result<std::vector<uint8_t>> mask_flags(const std::string& name, const Tensor& mask);

}  // namespace vkformer
