// TextRegex: regular expressions of tokenizer files, matched over Unicode text by PCRE2.
//
// Tokenizer files are written for Oniguruma. A pattern is read as Oniguruma reads it
// (regex_tree.h). Its sets of characters come from this room's tables (unicode_tables.h), and PCRE2
// matches symbols that stand for them (regex_alphabet.h). Where PCRE2 cannot match the same,
// compiling fails.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"
#include "vkformer/result.h"

namespace vkformer {

// A compiled pattern. Immutable and shared; threads may match at the same time.
class TextRegex {
 public:
  // `where` names the pattern's place in the file for messages.
  static Result<TextRegex> compile(const std::string& pattern, const std::string& where);

  // Every match, leftmost first and disjoint, as ranges of code points. An empty match right after
  // another match is passed over.
  Result<std::vector<CharSpan>> find_all(std::u32string_view text) const;

 private:
  struct Compiled;
  explicit TextRegex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace vkformer
