// Tables of characters, held against the checksums that tools/unicode_tables computed of the
// database.
#include "unicode/unicode_tables.h"

#include <doctest/doctest.h>

#include "unicode/unicode.h"

using namespace vkformer;

namespace {

namespace data {
#include "unicode/unicode_data.inc"
}  // namespace data

template <class CodeOf>
uint64_t checksum(CodeOf code_of) {
  uint64_t value = 0xCBF29CE484222325u;
  for (char32_t c = 0; c <= CharSet::kLast; ++c) {
    value = (value ^ static_cast<uint64_t>(code_of(c))) * 0x100000001B3u;
  }
  return value;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("unicode tables: every character") {
    CHECK(checksum(category_of) == data::kCategoryChecksum);
    CHECK(checksum(script_of) == data::kScriptChecksum);
    CHECK(std::string_view(data::kVersion) == "16.0.0");
  }

  TEST_CASE("unicode tables: sets agree with single characters") {
    const CharSet letters = *property_set("L");
    const CharSet numbers = *property_set("N");
    const CharSet capitals = *property_set("Lu");
    const CharSet greek = *property_set("Greek");
    for (char32_t c = 0; c <= CharSet::kLast; ++c) {
      const Category category = category_of(c);
      const bool agrees = letters.contains(c) == is_letter_category(category) &&
                          numbers.contains(c) == is_number_category(category) &&
                          capitals.contains(c) == (category == Category::kLu) &&
                          greek.contains(c) == (script_of(c) == script_number("Greek"));
      if (!agrees) CHECK_MESSAGE(agrees, c);
    }
    CHECK_FALSE(property_set("NoSuchThing"));
    CHECK_FALSE(property_set(""));
  }

  TEST_CASE("unicode tables: the words of pre-tokenizers") {
    // Alphabetic, marks, decimal digits, connectors and the two joiners.
    const CharSet words = property_set("Word")->united(CharSet({{0x200C, 0x200D}}));
    for (char32_t c = 0; c <= CharSet::kLast; ++c) {
      if (words.contains(c) != is_word(c)) CHECK_MESSAGE(words.contains(c) == is_word(c), c);
    }
  }

  TEST_CASE("unicode tables: scripts of Unicode 9") {
    CHECK(script_in_9('a') == script_number("Latin"));
    CHECK(script_in_9(0x589) == script_number("Common"));
    CHECK(script_of(0x589) == script_number("Armenian"));
    CHECK(script_in_9(0x1C89) == 0);
    CHECK(script_of(0x1C89) == script_number("Cyrillic"));
    CHECK(script_in_9(0x10FFFF) == 0);
  }

  TEST_CASE("unicode tables: case") {
    const CharSet s = without_case(CharSet({{'s', 's'}}));
    CHECK(s == CharSet({{'S', 'S'}, {'s', 's'}, {0x17F, 0x17F}}));
    CHECK(without_case(CharSet({{'1', '1'}})) == CharSet({{'1', '1'}}));
    CHECK(without_case(CharSet({{0x3A3, 0x3A3}})) == CharSet({{0x3A3, 0x3A3}, {0x3C2, 0x3C3}}));
  }

  TEST_CASE("character sets") {
    const CharSet set({{'c', 'e'}, {'a', 'b'}, {'d', 'h'}, {'x', 'x'}});
    CHECK(set == CharSet({{'a', 'h'}, {'x', 'x'}}));
    CHECK(set.contains('x'));
    CHECK_FALSE(set.contains('i'));
    CHECK(set.inverted().inverted() == set);
    CHECK(CharSet().inverted() == CharSet({{0, CharSet::kLast}}));
    CHECK(CharSet({{0, CharSet::kLast}}).inverted() == CharSet());
    CHECK(set.intersected(CharSet({{'g', 'y'}})) == CharSet({{'g', 'h'}, {'x', 'x'}}));
    CHECK(set.united(CharSet({{'i', 'w'}})) == CharSet({{'a', 'x'}}));
  }
}
