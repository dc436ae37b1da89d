// Hand-written word patterns against the general regular expression.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "text/word_scanner.h"
#include "unicode/text_regex.h"
#include "unicode/utf8.h"

using namespace vkformer;

namespace {

constexpr WordPattern kPatterns[] = {WordPattern::kGpt2, WordPattern::kLlama3, WordPattern::kQwen2};

TextRegex compiled(const std::string& pattern) {
  auto regex = TextRegex::compile(pattern, "pattern");
  REQUIRE_MESSAGE(regex.ok(), (regex.ok() ? std::string() : regex.error().message));
  return std::move(regex).value();
}

std::vector<std::string> words_of(WordPattern pattern, const std::string& text) {
  const auto chars = decode_utf8(text, "text");
  REQUIRE(chars.ok());
  std::vector<CharSpan> ranges;
  scan_words(pattern, *chars, ranges);
  std::vector<std::string> words;
  for (const CharSpan& range : ranges) {
    words.push_back(encode_utf8(chars->substr(range.begin, range.end - range.begin)));
  }
  return words;
}

using Words = std::vector<std::string>;

char32_t random_char(std::mt19937& random) {
  constexpr std::u32string_view usual =
      U"  \t\r\n\n'''sStTrReEvVmMlLdD\u017F\u212A019\u00B2\u0660\u2163\u00E9e\u0301\u4E2D\uAC00"
      U"\u1E9E\u01C5\u00A0\u3000\u2028\u0085\u200B\u001C\U0001F600\u200D\U0001F1E9!?-_\u2019";
  const uint32_t kind = random() % 8;
  if (kind < 5) return usual[random() % usual.size()];
  char32_t c = random() % (kind == 5 ? 0x250u : kind == 6 ? 0x10000u : 0x110000u);
  return c >= 0xD800 && c < 0xE000 ? c - 0x800 : c;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("word scanner: patterns are known by their spelling") {
    for (const WordPattern pattern : kPatterns) {
      CHECK(find_word_pattern(word_pattern_regex(pattern)) == pattern);
    }
    CHECK_FALSE(find_word_pattern("\\s+").has_value());
    CHECK_FALSE(find_word_pattern("").has_value());
  }

  TEST_CASE("word scanner: the same words as the regular expression on random Unicode") {
    // Characters that the regular expression library's Unicode does not know yet are omitted.
    const TextRegex unassigned = compiled("\\p{Cn}");
    std::mt19937 random(21);
    for (const WordPattern pattern : kPatterns) {
      const TextRegex regex = compiled(std::string(word_pattern_regex(pattern)));
      for (int round = 0; round < 4000; ++round) {
        std::u32string text;
        for (size_t length = random() % 24; text.size() < length;) {
          text.append(1 + (random() % 8 == 0 ? random() % 5 : 0), random_char(random));
        }
        const auto unknown = unassigned.find_all(text);
        REQUIRE(unknown.ok());
        for (const CharSpan& range : *unknown) text[range.begin] = U'\u0378';
        const auto expected = regex.find_all(text);
        REQUIRE(expected.ok());
        std::vector<CharSpan> found;
        scan_words(pattern, text, found);
        CAPTURE(encode_utf8(text));
        REQUIRE(found == *expected);
      }
    }
  }

  TEST_CASE("word scanner: contractions") {
    CHECK(words_of(WordPattern::kGpt2, "it's 'll 'LL we've'd'") ==
          Words{"it", "'s", " '", "ll", " '", "LL", " we", "'ve", "'d", "'"});
    CHECK(words_of(WordPattern::kLlama3, "it'S 'll 'LL'rE'x'") ==
          Words{"it", "'S", " '", "ll", " '", "LL", "'rE", "'x", "'"});
    // The long s folds to s.
    CHECK(words_of(WordPattern::kQwen2, "a'\u017Fx") == Words{"a", "'\u017F", "x"});
    CHECK(words_of(WordPattern::kGpt2, "a'\u017Fx") == Words{"a", "'", "\u017Fx"});
  }

  TEST_CASE("word scanner: numbers") {
    CHECK(words_of(WordPattern::kGpt2, "a 12345\u00B2!") == Words{"a", " 12345\u00B2", "!"});
    CHECK(words_of(WordPattern::kLlama3, "a 12345\u00B2!") ==
          Words{"a", " ", "123", "45\u00B2", "!"});
    CHECK(words_of(WordPattern::kQwen2, "a 12\u2163") == Words{"a", " ", "1", "2", "\u2163"});
  }

  TEST_CASE("word scanner: white space") {
    CHECK(words_of(WordPattern::kGpt2, "a   b \n\n c\t") ==
          Words{"a", "  ", " b", " \n\n", " c", "\t"});
    CHECK(words_of(WordPattern::kLlama3, "a   b \n\n c.\n\n  \n\t!  ") ==
          Words{"a", "  ", " b", " \n\n", " c", ".\n\n", "  \n", "\t", "!", "  "});
    CHECK(words_of(WordPattern::kQwen2, "\u3000\u4E2D\u3000!") ==
          Words{"\u3000\u4E2D", "\u3000", "!"});
    CHECK(words_of(WordPattern::kGpt2, "").empty());
  }

  TEST_CASE("word scanner: letters and digits of Unicode 16") {
    // GARAY CAPITAL LETTER A and GARAY DIGIT ONE, neither in Unicode 15.
    CHECK(words_of(WordPattern::kGpt2, "a\U00010D50 \U00010D411") ==
          Words{"a\U00010D50", " \U00010D411"});
    // An unassigned neighbor is neither.
    CHECK(words_of(WordPattern::kGpt2, "a\U00010D66") == Words{"a", "\U00010D66"});
  }
}
