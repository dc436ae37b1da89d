// What a terminal shows better than a file: colors and bars.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace vkformer::cli {

// Whether what is written there is seen by a person.
bool is_terminal(std::FILE* stream);

enum class Color : uint8_t { kBold, kFaint, kRed, kGreen, kYellow, kCyan };
// `text` in that color where `stream` is a terminal that has colors, and as it is everywhere else.
// That is into files and pipes, with the variable NO_COLOR (no-color.org), and with TERM=dumb.
std::string colored(std::string_view text, Color color, std::FILE* stream);

// A bar of `share` (0 to 1) of `width` columns, in eighths of a column where the locale has UTF-8
// and in '#' elsewhere. Without the spaces that fill it up.
std::string bar_text(double share, int width);

// `text` filled with spaces up to `width` columns; every character of it counts as one.
std::string filled(const std::string& text, size_t width);

}  // namespace vkformer::cli
