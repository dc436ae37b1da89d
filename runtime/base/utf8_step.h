// The one decision on what is UTF-8 (Unicode 15, table 3-7). Needs: nothing.
#pragma once

#include <cstddef>
#include <string_view>

namespace vkformer {

// A character of UTF-8, or what is wrong there.
struct Utf8Step {
  size_t length = 0;   // bytes
  bool valid = false;  // if not, `length` bytes together are one error
};

// Looks at what `text` begins with. Malformed, overlong, surrogate and out-of-range sequences are
// errors. They are cut as Unicode recommends it (chapter 3.9, "Substitution of Maximal Subparts").
// The longest start of a good sequence is one error, and so is any other byte. Precondition: not
// empty.
inline Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  const size_t wanted = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (wanted == 0) return {1, false};
  // The second byte's range keeps out overlong forms, surrogates and what is above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  size_t length = 1;
  while (length < wanted && length < text.size()) {
    const unsigned char least = length == 1 ? low : 0x80;
    const unsigned char most = length == 1 ? high : 0xBF;
    if (byte(length) < least || byte(length) > most) break;
    ++length;
  }
  return {length, length == wanted};
}

// The code point of a character. Precondition: utf8_step(text) gave this length and `valid`.
inline char32_t utf8_value(std::string_view text, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  char32_t value = length == 1 ? byte(0) : byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) value = value << 6 | (byte(i) & 0x3Fu);
  return value;
}

}  // namespace vkformer
