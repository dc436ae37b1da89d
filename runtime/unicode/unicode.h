// Unicode character classes over our own tables (unicode_tables.h), lower case and normalization
// forms over utf8proc's.
//
// The classes are those that tokenizer files are written for: the Unicode properties of the Rust
// and Oniguruma regular expressions. They differ from C's and Perl's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace vkformer {

// Property White_Space.
bool is_white_space(char32_t c);
// \w: Alphabetic, marks, decimal digits, connector punctuation and the two joiners.
bool is_word(char32_t c);
// Any P* category of Unicode 8.0 (unicode_older.h), and all ASCII punctuation.
bool is_punctuation(char32_t c);
// Any M* category of Unicode 9.0.
bool is_mark(char32_t c);
// Categories Nd, Nl and No.
bool is_numeric(char32_t c);

// One character of a rewritten text and how it relates to the text before. `change` is 0 when it
// replaces the next old character, and 1 when it is inserted after it. It is -n when it replaces
// the next old character and n more.
struct CharChange {
  char32_t c = 0;
  int32_t change = 0;
};

// Whether all characters are below U+0080.
bool is_ascii(std::u32string_view text);

// The lower case of a character whose lower case is one character: any but U+0130.
char32_t to_lower(char32_t c);
// Appends the full, context-free lower case of `c`.
void append_lower_case(char32_t c, std::vector<CharChange>& out);

enum class UnicodeForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// `text` in a normalization form (UAX 15) of Unicode 9.0, with the change that each character
// makes.
std::vector<CharChange> normalization_changes(std::u32string_view text, UnicodeForm form);

}  // namespace vkformer
