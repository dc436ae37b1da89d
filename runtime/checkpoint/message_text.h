// Text from files, made safe to put into a message. A hostile file chooses these strings.
#pragma once

#include <string>
#include <string_view>

namespace vkformer {

// "[text]", with control characters replaced and everything after 160 bytes left out.
inline std::string bracketed(std::string_view text) {
  constexpr size_t kLongest = 160;
  std::string result = "[";
  for (const char c : text.substr(0, kLongest)) {
    const unsigned char u = static_cast<unsigned char>(c);
    result += u < 0x20 || u == 0x7f ? '?' : c;
  }
  if (text.size() > kLongest) {
    // Not in the middle of a UTF-8 character: drop its first bytes too.
    while ((static_cast<unsigned char>(result.back()) & 0xc0u) == 0x80u) result.pop_back();
    if (static_cast<unsigned char>(result.back()) >= 0xc0u) result.pop_back();
    result += "...";
  }
  return result + "]";
}

}  // namespace vkformer
