#include "unicode/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"

namespace vkformer {
namespace {

constexpr size_t kBlock = 16;  // bytes

// Whether the next bytes are a whole block and all of them ASCII.
bool is_ascii_block(std::string_view bytes, size_t at) {
  if (bytes.size() - at < kBlock) return false;
  std::array<uint64_t, kBlock / 8> words{};
  std::memcpy(words.data(), bytes.data() + at, kBlock);
  return ((words[0] | words[1]) & 0x8080808080808080u) == 0;
}

}  // namespace

Result<std::u32string> decode_utf8(std::string_view bytes, std::string_view what,
                                   std::u32string memory) {
  // Some room in front costs nothing and is often wanted: normalizers put a character there.
  constexpr size_t kRoom = 4;
  std::u32string out = std::move(memory);
  out.reserve(bytes.size() + kRoom);
  out.resize(bytes.size());
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
    const Utf8Step step = utf8_step(bytes.substr(at));
    if (!step.valid) {
      return invalid_argument(message({"The ", what, " is not valid UTF-8 at byte offset ", at,
                                       " of ", bytes.size(), "; convert it to UTF-8 first."}));
    }
    out[written++] = utf8_value(bytes.substr(at), step.length);
    at += step.length;
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
