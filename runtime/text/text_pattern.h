// TextPattern: what Split and Replace look for, a plain string or a regular expression; and the
// ways to cut a text at what was found. Needs: AlignedText, JsonRef, TextRegex.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "json/json_access.h"
#include "unicode/aligned_text.h"
#include "unicode/text_regex.h"

namespace vkformer {

class TextPattern {
 public:
  // {"String": "..."} or {"Regex": "..."}.
  static Result<TextPattern> parse(const JsonRef& json);

  // Every match, in order and disjoint.
  Result<std::vector<CharSpan>> find_all(std::u32string_view text) const;
  // The plain string; empty for a regular expression.
  std::u32string_view literal() const { return literal_; }
  // The character of a plain string of one; nothing for other patterns.
  std::optional<char32_t> character() const {
    return regex_ || literal_.size() != 1 ? std::nullopt : std::optional(literal_[0]);
  }

 private:
  std::u32string literal_;
  std::optional<TextRegex> regex_;
};

// What becomes of the matches: for "-" in "a--b",
enum class SplitBehavior : uint8_t {
  kRemoved,             // a, b
  kIsolated,            // a, -, -, b
  kMergedWithPrevious,  // a-, -, b
  kMergedWithNext,      // a, -, -b
  kContiguous,          // a, --, b
};

// Reads "Removed", "Isolated", ... from the file.
Result<SplitBehavior> parse_split_behavior(const JsonRef& json);

enum class SplitSide : uint8_t {
  kMatches,     // the matches are the delimiters
  kNonMatches,  // the text between them is ("invert" in the file)
};

// Cuts a text of `size` characters at `matches` (in order, disjoint): ranges that cover it, but for
// what is removed. Some may be empty.
std::vector<CharSpan> split_parts(size_t size, std::span<const CharSpan> matches,
                                  SplitBehavior behavior, SplitSide side);

// Matches of one character each.
std::vector<CharSpan> find_characters(std::u32string_view text, bool (*accepts)(char32_t));

}  // namespace vkformer
