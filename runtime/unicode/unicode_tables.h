// Tables of the Unicode character database, version 16.0.0. It is the one of the regular
// expressions that tokenizer files are written for (Oniguruma 6.9.10, Rust's regex). They are made
// by tools/unicode_tables and are the same on every machine, whatever its libraries know.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "unicode/char_set.h"

namespace vkformer {

enum class Category : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,  // letters
  kMn,
  kMc,
  kMe,  // marks
  kNd,
  kNl,
  kNo,  // numbers
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,  // punctuation
  kSm,
  kSc,
  kSk,
  kSo,  // symbols
  kZs,
  kZl,
  kZp,  // separators
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,  // others; kCn is unassigned
};

// The general category of a code point.
Category category_of(char32_t c);

constexpr bool is_letter_category(Category category) {
  return category <= Category::kLo;
}
constexpr bool is_mark_category(Category category) {
  return category >= Category::kMn && category <= Category::kMe;
}
constexpr bool is_number_category(Category category) {
  return category >= Category::kNd && category <= Category::kNo;
}
constexpr bool is_punctuation_category(Category category) {
  return category >= Category::kPc && category <= Category::kPo;
}

// The number of a character's script; 0 for a character without one.
uint8_t script_of(char32_t c);
// The same of Unicode 9.0.0, for the pre-tokenizer UnicodeScripts.
uint8_t script_in_9(char32_t c);
// The number of a script by its name in the database, such as "Han"; 0 for an unknown name.
uint8_t script_number(std::string_view name);

// The characters that \p{name} stands for in Oniguruma: a category, a script, a class of POSIX or
// one of some properties. Case, spaces, '-' and '_' do not count. Nothing for an unknown name.
std::optional<CharSet> property_set(std::string_view name);

// The set, and all characters that are equal to one of it but for their case (simple case folding).
CharSet without_case(const CharSet& set);

}  // namespace vkformer
