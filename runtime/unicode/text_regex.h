// TextRegex: regular expressions of tokenizer files, matched over Unicode text by PCRE2.
//
// Tokenizer files are written for Oniguruma's Ruby syntax. Where PCRE2 reads the same text
// otherwise, the pattern is translated (regex_translate.cpp); where it cannot be, compiling fails
// rather than matching something else.
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

// Rewrites an Oniguruma (Ruby syntax) pattern for PCRE2 with UTF, UCP and MULTILINE.
Result<std::string> translate_regex(const std::string& pattern, const std::string& where);

}  // namespace vkformer
