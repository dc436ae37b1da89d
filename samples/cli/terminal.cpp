#include "terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ranks.h"

namespace vkformer::cli {

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool has_colors(std::FILE* stream) {
  return is_terminal(stream) && *variable("NO_COLOR") == '\0' &&
         std::strcmp(variable("TERM"), "dumb") != 0;
}

// POSIX: the first of these that is set counts.
bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = variable(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const bool own = isatty(fileno(stream)) != 0;
  return stream == stdout ? terminal_of_ranks(own) : own;
}

std::string colored(std::string_view text, Color color, std::FILE* stream) {
  if (!has_colors(stream)) return std::string(text);
  const char* code = "1";
  switch (color) {
    case Color::kBold:
      break;
    case Color::kFaint:
      code = "2";
      break;
    case Color::kRed:
      code = "31";
      break;
    case Color::kGreen:
      code = "32";
      break;
    case Color::kYellow:
      code = "33";
      break;
    case Color::kCyan:
      code = "36";
      break;
  }
  return std::string("\033[") + code + "m" + std::string(text) + "\033[0m";
}

std::string bar_text(double share, int width) {
  const double columns = std::clamp(share, 0.0, 1.0) * width;
  if (!has_utf8()) return std::string(static_cast<size_t>(std::lround(columns)), '#');
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<size_t>(std::lround(columns * 8));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar + kEighths[eighths % 8];
}

std::string filled(const std::string& text, size_t width) {
  const auto columns = static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

}  // namespace vkformer::cli
