// RegexAlphabet: the characters of a regular expression as a matcher sees them that knows nothing
// of Unicode. Needs: CharSet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/char_set.h"

namespace vkformer {

// Characters that no set of a pattern tells apart are one symbol of a byte. So a text has a byte
// for each character, and a set is a small list of bytes. What letters are does not depend on the
// matcher's tables. Patterns that need more than 256 symbols, or characters themselves, are matched
// over UTF-8, their sets written out as ranges. Immutable.
class RegexAlphabet {
 public:
  enum class Symbols : uint8_t { kKinds, kCharacters };

  // With Symbols::kCharacters a symbol is a character in any case.
  RegexAlphabet(std::span<const CharSet> sets, Symbols symbols);

  bool is_bytes() const { return !page_of_.empty(); }
  // How a pattern matches one character of a set.
  const std::string& words(size_t set) const { return words_[set]; }
  // A text by its symbols. Precondition: Unicode scalar values.
  std::string symbols_of(std::u32string_view text) const;

 private:
  // Neighbors that no set tells apart: from its first character to the next one's.
  struct Stretch {
    char32_t first = 0;
    uint32_t kind = 0;
  };
  // The stretch that begins with a character, or the next one.
  static std::vector<Stretch>::iterator find(std::vector<Stretch>& stretches, char32_t first);
  static std::vector<Stretch> stretches_of(std::span<const CharSet> sets);
  static bool number_kinds(std::vector<Stretch>& stretches);
  void make_pages(std::span<const Stretch> stretches);

  static constexpr size_t kPage = 256;  // characters

  std::vector<std::string> words_;
  std::vector<uint16_t> page_of_;  // by the character's upper bits
  std::vector<uint8_t> pages_;
};

}  // namespace vkformer
