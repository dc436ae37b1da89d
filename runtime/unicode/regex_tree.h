// RegexTree: a regular expression of a tokenizer file as a tree, with sets of code points in place
// of letters, classes and properties. Needs: CharSet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "unicode/char_set.h"
#include "vkformer/result.h"

namespace vkformer {

struct RegexNode {
  enum class Kind : uint8_t {
    kEmpty,
    kSet,            // one character of sets[set]
    kAnchor,         // takes no character: PCRE2's words for it in `text`
    kSequence,       // the parts one after another
    kChoice,         // one of the parts
    kRepeat,         // the part, `least` to `most` times
    kGroup,          // the part; PCRE2's words that open the group in `text`
    kLookBehind,     // what precedes is the part; `text` as of a group
    kCapture,        // the part, kept for a back-reference; `text` as of a group
    kBackReference,  // PCRE2's words in `text`
  };
  enum class Mode : uint8_t { kGreedy, kLazy, kPossessive };
  static constexpr uint32_t kNoLimit = UINT32_MAX;

  Kind kind = Kind::kEmpty;
  Mode mode = Mode::kGreedy;
  uint32_t set = 0;
  uint32_t least = 0;
  uint32_t most = 0;
  std::string text;
  std::vector<RegexNode> parts;
};

struct RegexTree {
  RegexNode root;
  std::vector<CharSet> sets;
  uint32_t word_set = 0;             // the set of \b, where the pattern has one
  bool has_back_references = false;  // which ask for a character itself
};

// Reads Oniguruma's own syntax (ONIG_SYNTAX_ONIGURUMA of 6.9.10), as the tokenizers library does.
// `where` names the pattern's place in messages. What PCRE2 cannot match the same way is a
// kUnsupported error, what Oniguruma refuses a kInvalidFile one.
Result<RegexTree> parse_regex(const std::string& pattern, const std::string& where);

}  // namespace vkformer
