// Text from files, made safe to put into a message. A hostile file chooses these strings.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace vkformer {

// Bytes of the character that `text` begins with, 0 where that is not UTF-8 (Unicode 15, table
// 3-7).
inline size_t utf8_prefix(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (!text.empty() && first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : length;
}

// "[text]", with control characters and bytes that are not UTF-8 replaced, and everything after 160
// bytes left out.
inline std::string bracketed(std::string_view text) {
  constexpr size_t kLongest = 160;
  std::string result = "[";
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = std::max<size_t>(1, utf8_prefix(text.substr(at)));
    if (at + length > kLongest) break;
    const unsigned char u = static_cast<unsigned char>(text[at]);
    const bool shown = length > 1 || (u >= 0x20 && u < 0x7f);
    result += shown ? std::string(text.substr(at, length)) : "?";
    at += length;
  }
  return result + (at < text.size() ? "...]" : "]");
}

}  // namespace vkformer
