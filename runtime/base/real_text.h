// Reads real numbers: std::from_chars where the standard library has it for them, which libc++
// before version 20 (Android's NDK, Xcode) does not.
#pragma once

#include <charconv>

namespace vkformer {

// As std::from_chars(first, last, value): the longest number at the start, in decimal, whatever the
// locale.
std::from_chars_result read_real(const char* first, const char* last, double& value);

// The same without the standard library's: what read_real is where that has none.
std::from_chars_result read_real_by_stream(const char* first, const char* last, double& value);

}  // namespace vkformer
