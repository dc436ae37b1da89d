// Sets of characters as paths of byte ranges. Needs: CharRange.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar_tree.h"

namespace vkformer {

// One byte range for each byte of a character; together they match length(first) bytes.
struct BytePath {
  struct Range {
    uint8_t first = 0;
    uint8_t last = 0;
  };
  std::array<Range, 4> ranges{};
  uint32_t length = 0;
};

// The paths whose bytes are exactly the UTF-8 of the characters. Precondition: normal ranges.
std::vector<BytePath> byte_paths(std::span<const CharRange> ranges);

}  // namespace vkformer
