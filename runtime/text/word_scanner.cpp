#include "text/word_scanner.h"

#include <array>

#include "unicode/unicode.h"
#include "unicode/unicode_tables.h"

namespace vkformer {
namespace {

// What the patterns tell apart: \r and \n, the rest of \s, \p{L}, \p{N}, and everything else.
enum class CharClass : uint8_t { kOther, kSpace, kNewline, kLetter, kNumber };

constexpr auto kAscii = [] {
  std::array<CharClass, 128> table{};
  for (char32_t c = 0; c < 128; ++c) {
    const char32_t low = c | 0x20;
    if (c == '\r' || c == '\n') {
      table[c] = CharClass::kNewline;
    } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
      table[c] = CharClass::kSpace;
    } else if (low >= 'a' && low <= 'z') {
      table[c] = CharClass::kLetter;
    } else if (c >= '0' && c <= '9') {
      table[c] = CharClass::kNumber;
    }
  }
  return table;
}();

CharClass wide_class(char32_t c) {
  if (is_white_space(c)) return CharClass::kSpace;
  const Category category = category_of(c);
  if (is_letter_category(category)) return CharClass::kLetter;
  return is_number_category(category) ? CharClass::kNumber : CharClass::kOther;
}

inline CharClass class_of(char32_t c) {
  return c < 128 ? kAscii[c] : wide_class(c);
}

bool is_space(CharClass kind) {
  return kind == CharClass::kSpace || kind == CharClass::kNewline;
}

// How a file spells a pattern, and how many digits a word has at most.
struct PatternTraits {
  std::string_view regex;
  size_t max_digits = 0;
};

constexpr std::array<PatternTraits, 3> kTraits = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SIZE_MAX},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     1},
}};

// One text under one pattern. Each function is told where a match begins and says where it ends.
class Scanner {
 public:
  Scanner(std::u32string_view text, size_t max_digits) : text_(text), max_digits_(max_digits) {}

  size_t gpt2(size_t at) const {
    if (text_[at] == U'\'') {
      const size_t length = contraction(at, [](char32_t c) { return c; });
      if (length > 0) return at + length;
    }
    // " ?" joins a space to what follows, unless that is white space.
    const size_t begin = at + (text_[at] == U' ' && at + 1 < text_.size() ? 1 : 0);
    const CharClass kind = class_of(text_[begin]);
    return is_space(kind) ? white_space(at) : run_end(begin, kind);
  }

  size_t llama3(size_t at) const {
    const char32_t c = text_[at];
    if (c == U'\'') {
      const size_t length = contraction(at, fold);
      if (length > 0) return at + length;
    }
    const CharClass kind = class_of(c);
    if (kind == CharClass::kLetter) return run_end(at, kind);
    if (kind == CharClass::kNumber) {
      size_t end = at + 1;
      while (end < text_.size() && end - at < max_digits_ && class_of(text_[end]) == kind) ++end;
      return end;
    }
    const CharClass next =
        at + 1 < text_.size() ? class_of(text_[at + 1]) : CharClass::kNewline;  // no text, no run
    if (kind != CharClass::kNewline && next == CharClass::kLetter) return run_end(at + 1, next);
    if (kind == CharClass::kOther || (c == U' ' && next == CharClass::kOther)) {
      size_t end = run_end(at + (c == U' ' ? 1 : 0), CharClass::kOther);
      while (end < text_.size() && class_of(text_[end]) == CharClass::kNewline) ++end;
      return end;
    }
    // \s*[\r\n]+ backs up to the last line end of the white space.
    for (size_t end = white_space_end(at); end > at; --end) {
      if (class_of(text_[end - 1]) == CharClass::kNewline) return end;
    }
    return white_space(at);
  }

 private:
  // The simple case folding of the letters in contractions: U+017F, the long s, is an s.
  static char32_t fold(char32_t c) {
    if (c == 0x17F) return U's';
    return c >= U'A' && c <= U'Z' ? c + 32 : c;
  }

  // The length of 's 't 're 've 'm 'll 'd, or 0. Precondition: an apostrophe stands at `at`.
  template <class Fold>
  size_t contraction(size_t at, Fold folded) const {
    if (at + 1 >= text_.size()) return 0;
    const char32_t first = folded(text_[at + 1]);
    if (first == U's' || first == U't' || first == U'm' || first == U'd') return 2;
    if (at + 2 >= text_.size()) return 0;
    const char32_t second = folded(text_[at + 2]);
    const bool pair =
        ((first == U'r' || first == U'v') && second == U'e') || (first == U'l' && second == U'l');
    return pair ? 3 : 0;
  }

  size_t run_end(size_t at, CharClass kind) const {
    while (at < text_.size() && class_of(text_[at]) == kind) ++at;
    return at;
  }

  size_t white_space_end(size_t at) const {
    while (at < text_.size() && is_space(class_of(text_[at]))) ++at;
    return at;
  }

  // \s+(?!\S)|\s+: before other text, the last of several characters is left to what follows.
  size_t white_space(size_t at) const {
    const size_t end = white_space_end(at);
    return end == text_.size() || end == at + 1 ? end : end - 1;
  }

  std::u32string_view text_;
  size_t max_digits_;
};

}  // namespace

std::optional<WordPattern> find_word_pattern(std::string_view regex) {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].regex == regex) return static_cast<WordPattern>(i);
  }
  return std::nullopt;
}

std::string_view word_pattern_regex(WordPattern pattern) {
  return kTraits[static_cast<size_t>(pattern)].regex;
}

void scan_words(WordPattern pattern, std::u32string_view text, std::vector<CharSpan>& words) {
  const Scanner scanner(text, kTraits[static_cast<size_t>(pattern)].max_digits);
  for (size_t at = 0; at < text.size();) {
    const size_t end = pattern == WordPattern::kGpt2 ? scanner.gpt2(at) : scanner.llama3(at);
    words.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
    at = end;
  }
}

}  // namespace vkformer
