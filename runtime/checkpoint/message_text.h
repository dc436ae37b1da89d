// Text from files, made safe to put into a message. A hostile file chooses these strings.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8_step.h"

namespace vkformer {

// "[text]", with control characters and bytes that are not UTF-8 replaced, and everything after 160
// bytes omitted.
inline std::string bracketed(std::string_view text) {
  constexpr size_t kLongest = 160;
  std::string result = "[";
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    const size_t length = step.valid ? step.length : 1;
    if (at + length > kLongest) break;
    const unsigned char u = static_cast<unsigned char>(text[at]);
    const bool shown = length > 1 || (u >= 0x20 && u < 0x7f);
    result += shown ? std::string(text.substr(at, length)) : "?";
    at += length;
  }
  return result + (at < text.size() ? "...]" : "]");
}

}  // namespace vkformer
