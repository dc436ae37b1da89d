// The compilers of software drivers: what is known of them. Code is rewritten for the one that
// leaves specialization constants open. absent.cpp replaces it as it does strategies.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/device_caps.h"

namespace vkformer {

// Sets `caps.compiler` by device class and driver (docs/devices.md).
void describe_software_compiler(DeviceCaps& caps);

// A module for a compiler that wants literals. It has the values of specialization constants by id
// (software/specialize.h), and one access chain a buffer (software/buffer_chains.h). Precondition:
// `words` is a module that reflect_spirv takes.
Result<std::vector<uint32_t>> literal_module(std::span<const uint32_t> words,
                                             std::span<const uint32_t> values);

}  // namespace vkformer
