// CharTrie: which of a set of strings start at a place of a text. It is a double array over
// characters (Aoe, "An efficient digital search algorithm by using a double-array structure",
// 1989).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vkformer {

// Strings with a number each, as a trie whose edges are characters. Immutable once built.
//
// A walk starts at root() and steps with next(); value() is the number of the string that ends at a
// node, or kNoValue.
class CharTrie {
 public:
  struct Entry {
    std::u32string text;
    int32_t value = 0;  // 0 or more
  };
  static constexpr int32_t kNoValue = -1;
  static constexpr uint32_t kNoNode = 0xFFFFFFFF;

  CharTrie() : CharTrie(std::vector<Entry>()) {}
  // Of equal texts the last one counts. Empty texts are passed over. Fewer than 2^31 characters.
  explicit CharTrie(std::vector<Entry> entries);

  // Characters by the trie's own numbers, 0 for one that occurs in no string. Precondition: a
  // Unicode scalar value.
  uint32_t code_of(char32_t c) const {
    return c < 0x80 ? ascii_[c] : pages_[page_of_[c >> 8] * 256u + (c & 0xFF)];
  }

  static constexpr uint32_t root() { return 0; }
  // The node that the edge `code` leads to, or kNoNode. Preconditions: a node, a code of code_of.
  uint32_t next(uint32_t node, uint32_t code) const {
    const uint32_t child = units_[node].base + code;
    return units_[child].parent == node ? child : kNoNode;
  }
  int32_t value(uint32_t node) const { return units_[node].value; }

  // The value of the whole `text`, or kNoValue.
  int32_t find(std::u32string_view text) const;

 private:
  class Builder;

  // A node lies at `base + code` of its parent. At least as many units as there are codes follow
  // the last base, so that next() needs no check of its bounds.
  struct Unit {
    uint32_t base = 0;
    uint32_t parent = kNoNode;  // kNoNode for a free place
    int32_t value = kNoValue;
  };

  std::array<uint32_t, 0x80> ascii_{};
  std::array<uint16_t, 0x1100> page_of_{};  // by the character's upper bits; page 0 is empty
  std::vector<uint32_t> pages_;             // 256 codes each
  std::vector<Unit> units_;
};

}  // namespace vkformer
