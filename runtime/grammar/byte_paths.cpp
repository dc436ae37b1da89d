#include "grammar/byte_paths.h"

#include <algorithm>
#include <string>

#include "unicode/utf8.h"

namespace vkformer {
namespace {

// The last characters of one, two, three and four bytes.
constexpr std::array<char32_t, 4> kLastOfLength = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

// Cuts a range of characters with equal numbers of bytes until the bytes of its ends, taken
// position by position, span just its characters.
void add_paths(CharRange range, uint32_t length, std::vector<BytePath>& out) {
  for (uint32_t tail = 1; tail < length; ++tail) {
    const char32_t low = (char32_t{1} << (6 * tail)) - 1;  // the bits of the last `tail` bytes
    if ((range.first & ~low) == (range.last & ~low)) continue;
    if ((range.first & low) != 0) {
      add_paths({range.first, range.first | low}, length, out);
      add_paths({(range.first | low) + 1, range.last}, length, out);
      return;
    }
    if ((range.last & low) != low) {
      add_paths({range.first, (range.last & ~low) - 1}, length, out);
      add_paths({range.last & ~low, range.last}, length, out);
      return;
    }
  }
  std::string first;
  std::string last;
  append_utf8(first, range.first);
  append_utf8(last, range.last);
  BytePath path;
  path.length = length;
  for (uint32_t i = 0; i < length; ++i) {
    path.ranges[i] = {static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])};
  }
  out.push_back(path);
}

}  // namespace

std::vector<BytePath> byte_paths(std::span<const CharRange> ranges) {
  std::vector<BytePath> out;
  for (const CharRange& range : ranges) {
    char32_t least = 0;
    for (uint32_t length = 1; length <= 4; ++length) {
      const CharRange part = {std::max(range.first, least),
                              std::min(range.last, kLastOfLength[length - 1])};
      if (part.first <= part.last) add_paths(part, length, out);
      least = kLastOfLength[length - 1] + 1;
    }
  }
  return out;
}

}  // namespace vkformer
