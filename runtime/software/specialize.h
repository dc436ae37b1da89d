// Gives specialization constants their values in the SPIR-V itself, for compilers that leave them
// open. One such compiles both sides of every branch that a constant decides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace vkformer {

// The module with ordinary constants: the one of id i is values[i], or its default where there are
// fewer values. Operations on them are computed; an error names one that is not known here.
// Precondition: `words` is a module that reflect_spirv takes.
Result<std::vector<uint32_t>> specialize_spirv(std::span<const uint32_t> words,
                                               std::span<const uint32_t> values);

}  // namespace vkformer
