// The decision on what is UTF-8, against the definition by code points.
#include "base/utf8_step.h"

#include <doctest/doctest.h>

#include <string>

#include "unicode/utf8.h"

using namespace vkformer;

namespace {

// The shortest form of a code point in `length` bytes starts here.
constexpr char32_t kFirstOf[] = {0, 0, 0x80, 0x800, 0x10000};

// By the bit patterns of the four lengths, and by value.
bool is_character(const std::string& bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const size_t length = bytes.size();
  if (length == 1) return byte(0) < 0x80;
  const unsigned mark = 0xFF00u >> length & 0xFF;  // as many ones as bytes
  if ((byte(0) & (mark >> 1 | 0x80)) != mark) return false;
  char32_t value = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return false;
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  return value >= kFirstOf[length] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
}

std::string bytes_of(unsigned number, size_t length) {
  std::string bytes;
  for (size_t i = length; i-- > 0;) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
  return bytes;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("utf-8: every character is read back") {
    size_t wrong = 0;
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      std::string bytes;
      append_utf8(bytes, c);
      const size_t length = bytes.size();
      bytes += "\x80z";
      const Utf8Step step = utf8_step(bytes);
      if (!step.valid || step.length != length || utf8_value(bytes, length) != c) ++wrong;
    }
    CHECK(wrong == 0);
  }

  TEST_CASE("utf-8: every sequence of up to 3 bytes, and the edges of 4") {
    size_t wrong = 0;
    const auto look = [&](const std::string& bytes) {
      const Utf8Step step = utf8_step(bytes);
      const bool whole = step.valid && step.length == bytes.size();
      if (whole != is_character(bytes)) ++wrong;
      if (step.length == 0 || step.length > bytes.size()) ++wrong;
    };
    for (size_t length = 1; length <= 3; ++length) {
      for (unsigned number = 0; number < 1u << (8 * length); ++number) {
        look(bytes_of(number, length));
      }
    }
    for (unsigned lead = 0xEF; lead <= 0xFF; ++lead) {
      for (unsigned second = 0; second <= 0xFF; ++second) {
        for (const unsigned rest : {0x8080u, 0xBFBFu, 0x7F80u, 0x807Fu, 0xC080u, 0x80C0u}) {
          look(bytes_of(lead << 24 | second << 16 | rest, 4));
        }
      }
    }
    CHECK(wrong == 0);
  }

  TEST_CASE("utf-8: one error is the longest start of a good sequence, or a byte") {
    const auto error = [](std::string_view bytes) {
      const Utf8Step step = utf8_step(bytes);
      return step.valid ? size_t{0} : step.length;
    };
    CHECK(error("\x80") == 1);
    CHECK(error("\xC0\x80") == 1);
    CHECK(error("\xC3") == 1);
    CHECK(error("\xE2\x82") == 2);
    CHECK(error("\xE2\x82z") == 2);
    CHECK(error("\xE0\x80\x80") == 1);  // overlong
    CHECK(error("\xED\xA0\x80") == 1);  // a surrogate
    CHECK(error("\xF0\x9F\x99") == 3);
    CHECK(error("\xF4\x90\x80\x80") == 1);  // above U+10FFFF
    CHECK(error("\xF5\x80\x80\x80") == 1);
    CHECK(error("\xFF") == 1);
  }
}
