// Makes a kernel compute the same bits on every device. Floating-point operations that Vulkan
// leaves open by some last places become those of functions.h. The others may not be contracted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"

namespace vkformer {

// What a device has to be told, or cannot be told, so that its f32 arithmetic is that of
// HostArithmetic.
struct ArithmeticModes {
  // Execution modes that the device offers for f32 (VK_KHR_shader_float_controls).
  bool flush_denormals = false, round_to_even = false, keep_specials = false;
  // Denormals are made zeros by integer operations, before and after every operation.
  bool guard_denormals = false;

  auto operator<=>(const ArithmeticModes&) const = default;
};

// The module in that arithmetic. An error names an operation that has no such form; kernels above
// the baseline tier have some.
// Precondition: `words` is a module that reflect_spirv takes.
Result<std::vector<uint32_t>> pin_arithmetic(std::span<const uint32_t> words,
                                             const ArithmeticModes& modes);

}  // namespace vkformer
