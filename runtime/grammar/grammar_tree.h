// GrammarTree: a context-free grammar over Unicode text, as a GBNF file or a JSON schema gives it.
// Needs: nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vkformer {

// Characters from first to last, both included.
struct CharRange {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CharRange&) const = default;
};

// Sorts ranges, joins those that touch, and omits surrogates, which are no characters.
std::vector<CharRange> normal_ranges(std::vector<CharRange> ranges);
// All other characters. The ranges must be normal.
std::vector<CharRange> inverse_ranges(std::span<const CharRange> ranges);

struct GrammarNode {
  enum class Kind : uint8_t {
    kLiteral,   // `bytes`
    kChars,     // one character of `chars`
    kRule,      // what rule `index` matches
    kSequence,  // `parts`, one after the other
    kChoice,    // one of `parts`
    kRepeat,    // part 0, from `least` to `most` times
  };
  Kind kind = Kind::kSequence;
  uint32_t index = 0;
  uint32_t least = 0;
  uint32_t most = 0;
  std::string bytes;  // UTF-8
  std::vector<CharRange> chars;
  std::vector<uint32_t> parts;
};

struct GrammarRule {
  std::string name;   // as messages show it
  std::string place;  // where it comes from, such as "line 3"
  uint32_t body = 0;
};

// Nodes are made bottom up and may be parts of several others.
struct GrammarTree {
  static constexpr uint32_t kNoLimit = UINT32_MAX;
  static constexpr char32_t kLastChar = 0x10FFFF;

  std::vector<GrammarNode> nodes;
  std::vector<GrammarRule> rules;
  uint32_t root = 0;  // a rule

  uint32_t literal(std::string_view bytes);
  uint32_t chars(std::vector<CharRange> ranges);
  uint32_t rule(uint32_t index);
  uint32_t sequence(std::vector<uint32_t> parts);
  uint32_t choice(std::vector<uint32_t> parts);
  uint32_t repeat(uint32_t part, uint32_t least, uint32_t most);
  uint32_t optional(uint32_t part) { return repeat(part, 0, 1); }
  // Adds a rule and gives its index; its body may be set later.
  uint32_t add_rule(std::string name, std::string place, uint32_t body);
};

}  // namespace vkformer
