#include "text/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace vkformer {
namespace {

// Bytes a sequence that starts with `lead` has; 0 for a byte that starts none.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

bool is_scalar_value(char32_t value, size_t length) {
  if (length == 3) return value >= 0x800 && (value < 0xD800 || value > 0xDFFF);
  if (length == 4) return value >= 0x10000 && value <= 0x10FFFF;
  return true;
}

constexpr size_t kBlock = 16;  // bytes

// Whether the next bytes are a whole block and all of them ASCII.
bool is_ascii_block(std::string_view bytes, size_t at) {
  if (bytes.size() - at < kBlock) return false;
  std::array<uint64_t, kBlock / 8> words{};
  std::memcpy(words.data(), bytes.data() + at, kBlock);
  return ((words[0] | words[1]) & 0x8080808080808080u) == 0;
}

}  // namespace

Result<std::u32string> decode_utf8(std::string_view bytes, std::string_view what) {
  std::u32string out(bytes.size(), U'\0');
  size_t written = 0;
  size_t at = 0;
  while (at < bytes.size()) {
    if (is_ascii_block(bytes, at)) {
      for (size_t i = 0; i < kBlock; ++i) {
        out[written + i] = static_cast<unsigned char>(bytes[at + i]);
      }
      written += kBlock;
      at += kBlock;
      continue;
    }
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const size_t length = sequence_length(lead);
    bool good = length != 0 && length <= bytes.size() - at;
    char32_t value = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; good && i < length; ++i) {
      const auto next = static_cast<unsigned char>(bytes[at + i]);
      good = (next & 0xC0) == 0x80;
      value = value << 6 | (next & 0x3Fu);
    }
    if (!good || !is_scalar_value(value, length)) {
      return invalid_argument("The " + std::string(what) + " is not valid UTF-8 at byte offset " +
                              std::to_string(at) + " of " + std::to_string(bytes.size()) +
                              "; convert it to UTF-8 first.");
    }
    out[written++] = value;
    at += length;
  }
  out.resize(written);
  return out;
}

void append_utf8(std::string& bytes, char32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    bytes += static_cast<char>(c);
  } else if (c < 0x800) {
    bytes += {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  } else if (c < 0x10000) {
    bytes += {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  } else {
    bytes += {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
  }
}

std::string encode_utf8(std::u32string_view code_points) {
  std::string bytes;
  bytes.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(bytes, c);
  return bytes;
}

}  // namespace vkformer
