// Regular expressions of tokenizer files: what Oniguruma 6.9.10 matches, which is what the
// tokenizers library uses.
#include "unicode/text_regex.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "unicode/utf8.h"

using namespace vkformer;

namespace {

using Strings = std::vector<std::string>;

// The matches of `pattern` in `text`.
Strings matches(const std::string& pattern, const std::string& text) {
  CAPTURE(pattern);
  const auto regex = TextRegex::compile(pattern, "pattern");
  REQUIRE_MESSAGE(regex.ok(), (regex.ok() ? std::string() : regex.error().message));
  const auto chars = decode_utf8(text, "text").value();
  const auto found = regex->find_all(chars);
  REQUIRE_MESSAGE(found.ok(), (found.ok() ? std::string() : found.error().message));
  Strings out;
  for (const CharSpan& range : *found) {
    out.push_back(
        encode_utf8(std::u32string_view(chars).substr(range.begin, range.end - range.begin)));
  }
  return out;
}

bool is_refused(const std::string& pattern, ErrorCode code) {
  CAPTURE(pattern);
  const auto regex = TextRegex::compile(pattern, "place");
  if (regex.ok()) return false;
  CHECK(regex.error().message.find("[place]") != std::string::npos);
  return regex.error().code == code;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("regex: works on code points") {
    CHECK(matches(".", "a\U0001F600\n\u00e9") == Strings{"a", "\U0001F600", "\u00e9"});
    CHECK(matches("(?m).", "a\n") == Strings{"a", "\n"});
    CHECK(matches("\\O", "a\n") == Strings{"a", "\n"});
    CHECK(matches("\\N+", "ab\ncd") == Strings{"ab", "cd"});
    CHECK(matches("^.", "ab\ncd\n") == Strings{"a", "c"});
    CHECK(matches(".$", "ab\ncd\n") == Strings{"b", "d"});
    CHECK(matches("b?", "abc") == Strings{"", "b", ""});
    CHECK(matches("b*", "bab") == Strings{"b", "b"});
    CHECK(matches("\\R", "\r\n\r\u2028x") == Strings{"\r\n", "\r", "\u2028"});
    CHECK(matches(".", "").empty());
  }

  TEST_CASE("regex: classes are the ones tokenizer files mean") {
    // U+180E is no white space; combining marks and letter numbers are word characters.
    CHECK(matches("\\s+", "a \u180e\u00a0\u0085b") == Strings{" ", "\u00a0\u0085"});
    CHECK(matches("[[:space:]]+", "a \u180e\u00a0b") == Strings{" ", "\u00a0"});
    CHECK(matches("[[:blank:]]+", "a\t\u3000\u180e\nb") == Strings{"\t\u3000"});
    CHECK(matches("[^\\s\\p{L}\\p{N}]+", "a \u180e.") == Strings{"\u180e."});
    CHECK(matches("\\w+", "e\u0301\u2167-x_\u203f") == Strings{"e\u0301\u2167", "x_\u203f"});
    CHECK(matches("[\\w-]+", "e\u0301-x!") == Strings{"e\u0301-x"});
    CHECK(matches("\\W+", "e\u0301-!x") == Strings{"-!"});
    CHECK(matches("\\bx", "x ax e\u0301x -x") == Strings{"x", "x"});
    CHECK(matches("\\h+", "xfF9 ") == Strings{"fF9"});
    CHECK(matches("\\p{Han}+", "\u4e16\u754c\u3001") == Strings{"\u4e16\u754c"});
    CHECK(matches("\\p{^L}+", "a1b") == Strings{"1"});
    CHECK(matches("[[:digit:]]+", "a12\u0663") == Strings{"12\u0663"});
    CHECK(matches("[]a]+", "b]a") == Strings{"]a"});
    // Symbols are punctuation in brackets of POSIX, and only there.
    CHECK(matches("[[:punct:]]+", "a+!b") == Strings{"+!"});
    CHECK(matches("\\p{Punct}+", "a+!b") == Strings{"!"});
  }

  TEST_CASE("regex: superscripts and fractions are words outside of brackets") {
    const std::string text = "x\u00b2\u00b3\u00b9\u00bc\u00bd\u00be\u2074";
    CHECK(matches("\\w+", text) == Strings{"x\u00b2\u00b3\u00b9\u00bc\u00bd\u00be"});
    CHECK(matches("\\p{Word}+", text) == Strings{"x\u00b2\u00b3\u00b9\u00bc\u00bd\u00be"});
    CHECK(matches("\\W+", text) == Strings{"\u2074"});
    CHECK(matches("x\\b", text).empty());
    CHECK(matches("[\\w]+", text) == Strings{"x"});
    CHECK(matches("[[:word:]]+", text) == Strings{"x"});
    CHECK(matches("[\\W]", "x\u00b2") == Strings{"\u00b2"});
  }

  TEST_CASE("regex: characters are those of Unicode 16") {
    // Letters, digits and emoji that came after Unicode 14, which the system's library may not
    // know.
    CHECK(matches("\\p{L}+", "\u1c89\ua7cb\U00010d50") == Strings{"\u1c89\ua7cb\U00010d50"});
    CHECK(matches("\\p{N}+", "\U00010d40\U0001ccf0") == Strings{"\U00010d40\U0001ccf0"});
    CHECK(matches("\\p{S}+", "a\U0001fae8\U0001fae9\U0001f6dc") ==
          Strings{"\U0001fae8\U0001fae9\U0001f6dc"});
    CHECK(matches("\\p{Extended_Pictographic}", "a\U0001fae9") == Strings{"\U0001fae9"});
    CHECK(matches("\\p{Garay}", "\U00010d50") == Strings{"\U00010d50"});
    // Unicode 17 is not known on any machine.
    CHECK(matches("\\p{Cn}", "\ua7ce") == Strings{"\ua7ce"});
  }

  TEST_CASE("regex: names of properties") {
    for (const char* name : {"Lu", "lu", "Uppercase_Letter", "upper case-letter"}) {
      CHECK(matches("\\p{" + std::string(name) + "}", "aB") == Strings{"B"});
    }
    CHECK(matches("\\p{LC}+", "aB\u01c5\u02b0") == Strings{"aB\u01c5"});
    CHECK(matches("\\p{greek}\\p{Grek}", "\u03b1\u03b2") == Strings{"\u03b1\u03b2"});
    CHECK(matches("\\p{Alphabetic}+", "a\u24b6\u2160\u0345") == Strings{"a\u24b6\u2160\u0345"});
    CHECK(matches("\\P{^L}", "1a") == Strings{"a"});
    CHECK(matches("\\p{Any}", "\n") == Strings{"\n"});
  }

  TEST_CASE("regex: brackets are sets") {
    CHECK(matches("[a&&b]", "ab&").empty());
    CHECK(matches("[a-w&&[^c-g]z]+", "abchwz") == Strings{"ab", "hw"});
    CHECK(matches("[a[bc]]+", "abcd") == Strings{"abc"});
    CHECK(matches("[^a[bc]]+", "abcd") == Strings{"d"});
    CHECK(matches("[\\W]+", "a-b") == Strings{"-"});
    CHECK(matches("[^\\H]+", "xfz") == Strings{"f"});
    CHECK(matches("[^\\S\\n]+", " \n\t") == Strings{" ", "\t"});
    CHECK(matches("[\\p{L}&&[^\\p{Latin}]]+", "a\u0431\u03b1") == Strings{"\u0431\u03b1"});
    CHECK(matches("[[:^alpha:]]+", "a1!b") == Strings{"1!"});
    CHECK(matches("[a-c-e]+", "b-de") == Strings{"b-", "e"});
    CHECK(matches("[-a]+[a-]+", "-a") == Strings{"-a"});
    CHECK(matches("[\\]\\\\]+", "a\\]") == Strings{"\\]"});
  }

  TEST_CASE("regex: case") {
    CHECK(matches("(?i:k)", "kK\u212ax") == Strings{"k", "K", "\u212a"});
    CHECK(matches("(?i:'s)", "'S '\u017f") == Strings{"'S", "'\u017f"});
    CHECK(matches("(?i)[^k]+", "akK\u212ab") == Strings{"a", "b"});
    CHECK(matches("(?i)\u03c3+", "\u03c3\u03c2\u03a3") == Strings{"\u03c3\u03c2\u03a3"});
    // Flags reach to the end of their group, over its other branches too.
    CHECK(matches("(?:a(?i)b|c)d", "abd aBd aCd ACd Ad") == Strings{"abd", "aBd", "aCd"});
    CHECK(matches("(?i:a(?-i:b))", "Ab AB") == Strings{"Ab"});
    // It changes no property, but one in brackets.
    CHECK(matches("(?i)\\p{Lu}", "aA") == Strings{"A"});
    CHECK(matches("(?i)[\\p{Lu}]", "aA") == Strings{"a", "A"});
  }

  TEST_CASE("regex: characters by their numbers") {
    CHECK(matches("\\x{e9}\\u00e9\\xc3\\xa9", "\u00e9\u00e9\u00e9") ==
          Strings{"\u00e9\u00e9\u00e9"});
    CHECK(matches("[\\x{4e00}-\\x{9fff}]+", "a\u4e2d\u6587") == Strings{"\u4e2d\u6587"});
    CHECK(matches("\\101\\t\\v\\e\\x41",
                  "A\t\v\x1b"
                  "A") == Strings{"A\t\v\x1b"
                                  "A"});
    CHECK(is_refused("\\xe9", ErrorCode::kInvalidFile));
    CHECK(is_refused("\\x{110000}", ErrorCode::kInvalidFile));
    CHECK(is_refused("\\ud800", ErrorCode::kInvalidFile));
  }

  TEST_CASE("regex: repeats") {
    CHECK(matches("a{,2}b", "aaab") == Strings{"aab"});
    CHECK(matches("a{2}?", "aaaa") == Strings{"aa", "aa"});
    CHECK(matches("a{2}+", "aaaaa") == Strings{"aaaa"});
    CHECK(matches("a{1,2}?", "aa") == Strings{"a", "a"});
    CHECK(matches("a{2,1}a", "aaa") == Strings{"aaa"});  // 1 to 2, possessive
    CHECK(matches("a{2,1}a", "aa").empty());
    CHECK(matches("a++a", "aaa").empty());
    CHECK(matches("{a{,}", "{a{,}") == Strings{"{a{,}"});
    CHECK(matches("(?x: a b # c\n + )", "abb") == Strings{"abb"});
    CHECK(matches("a(?#b)c", "ac") == Strings{"ac"});
    CHECK(is_refused("a{70000}", ErrorCode::kUnsupported));
  }

  TEST_CASE("regex: lookbehinds of bounded length") {
    CHECK(matches("(?<=a{1,3}b?)c", "aabc c abbc ac") == Strings{"c", "c"});
    CHECK(matches("(?<!ab?)c", "abc c ac") == Strings{"c"});
    CHECK(matches("(?<=(a|bc))d", "ad bcd cd") == Strings{"d", "d"});
    CHECK(matches("(?<=x(?:\\d{1,2}|\\p{L}{2,3}?|)y)z", "xyz x12yz xaayz xayz") ==
          Strings{"z", "z", "z"});
    CHECK(matches("(?<=(?:ab|a)?)b", "ab") == Strings{"b"});
    CHECK(matches("(?<=\\s{0,40}!)x", "! !x") == Strings{"x"});
    CHECK(matches("(?<!\\w)(?<=(?i:a)|\\.)b", "ab .b").size() == 1);
    CHECK(is_refused("(?<=a+)b", ErrorCode::kUnsupported));
    CHECK(is_refused("(?<=a?b?c?d?e?f?g?h?i?j?k?l?)x", ErrorCode::kUnsupported));
    CHECK(is_refused("(?<=(?>a|ab))c", ErrorCode::kUnsupported));
    CHECK(is_refused("(?<=\\R)c", ErrorCode::kUnsupported));
    CHECK(is_refused("(?<=\\b|a)c", ErrorCode::kUnsupported));
  }

  TEST_CASE("regex: back-references see characters") {
    CHECK(matches("(\\p{L})\\1", "abccd\u00e9\u00e9") == Strings{"cc", "\u00e9\u00e9"});
    CHECK(matches("(?<x>\\w)-\\k<x>", "a-b c-c") == Strings{"c-c"});
    CHECK(matches("(?i:(a)\\1)", "aA") == Strings{"aA"});
    CHECK(is_refused("\\1", ErrorCode::kInvalidFile));
  }

  TEST_CASE("regex: many different characters") {
    // More kinds than a byte tells apart.
    std::string pattern;
    std::string text;
    for (char32_t c = 0x4E00; c < 0x4E00 + 600; c += 2) {
      append_utf8(pattern, c);
      pattern += "+|";
      append_utf8(text, c);
      append_utf8(text, c);
    }
    CHECK(matches(pattern + "[^\\s\\S]", text).size() == 300);
  }

  TEST_CASE("regex: the byte-level pattern of GPT-2 and Qwen2") {
    const std::string gpt2 =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    CHECK(matches(gpt2, "I'm  h\u00e9re 42!\n ") ==
          Strings{"I", "'m", " ", " h\u00e9re", " 42", "!", "\n "});
    const std::string qwen2 =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
        "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    CHECK(matches(qwen2, "I'LL (go) 12\n\n") ==
          Strings{"I", "'LL", " (", "go", ")", " ", "1", "2", "\n\n"});
  }

  TEST_CASE("regex: what cannot be matched faithfully is refused") {
    for (const char* pattern : {"a\\K", "(*ACCEPT)", "\\pL", "\\X", "(?~ab)", "(?(1)a|b)",
                                "\\g<1>(a)", "\\p{NoSuchThing}", "(?{x})", "\\M-a"}) {
      CHECK(is_refused(pattern, ErrorCode::kUnsupported));
    }
    for (const char* pattern : {"(", "[a", "*", ")", "a\\", "[z-a]", "[a-\\d]", "[\\w-a]",
                                "[[:foo:]]", "[]", "^*", "(?=a)+", "\\p{L", "(?<a"}) {
      CHECK(is_refused(pattern, ErrorCode::kInvalidFile));
    }
    CHECK_FALSE(TextRegex::compile(std::string(100'000, 'a'), "place").ok());
    CHECK_FALSE(TextRegex::compile(std::string(5'000, '('), "place").ok());
    CHECK_FALSE(TextRegex::compile(std::string(5'000, '['), "place").ok());
    // Exponential backtracking ends with an error.
    const auto slow = TextRegex::compile("(a+)+$", "place");
    REQUIRE(slow.ok());
    CHECK_FALSE(slow->find_all(std::u32string(40, U'a') + U"b").ok());
  }

  TEST_CASE("regex: a large pattern compiles in time") {
    std::string pattern;
    for (int i = 0; i < 900; ++i) pattern += "[\\p{L}" + std::to_string(i) + "]|";
    for (int i = 0; pattern.size() < 60'000; ++i)
      pattern += "(?i:\\x{" + std::to_string(10000 + i) + "})|";
    const auto begin = std::chrono::steady_clock::now();
    const auto regex = TextRegex::compile(pattern + "a", "place");
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    if (!regex.ok()) CHECK_FALSE(regex.error().message.empty());
  }
}
