// Pre-tokenizers and the regular expressions they cut with.
#include "text/pre_tokenizers.h"

#include "text/tokenizer_files.h"
#include "unicode/text_regex.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Strings = std::vector<std::string>;

Strings split(const std::string& pre_tokenizer, const std::string& text) {
  const auto document = nlohmann::json::parse(pre_tokenizer);
  const auto made = parse_pre_tokenizer(JsonRef(document, "pre_tokenizer"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  WordList words(AlignedText(decode_utf8(text, "text").value()));
  const Status applied = (*made)->apply(words);
  REQUIRE_MESSAGE(applied.ok(), (applied.ok() ? std::string() : applied.error().message));
  Strings out;
  for (const CharSpan& word : words.words()) {
    out.push_back(encode_utf8(words.chars().substr(word.begin, word.end - word.begin)));
  }
  return out;
}

std::string split_on(const std::string& pattern, const std::string& behavior, bool invert) {
  return R"({"type": "Split", "pattern": )" + pattern + R"(, "behavior": ")" + behavior +
         R"(", "invert": )" + (invert ? "true" : "false") + "}";
}

// The matches of `pattern` in `text`.
Strings matches(const std::string& pattern, const std::string& text) {
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

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("pre-tokenizer: split by a string, every behaviour") {
    const std::string dash = R"({"String": "-"})";
    const std::string text = "the-final--countdown";
    CHECK(split(split_on(dash, "Removed", false), text) == Strings{"the", "final", "countdown"});
    CHECK(split(split_on(dash, "Isolated", false), text) ==
          Strings{"the", "-", "final", "-", "-", "countdown"});
    CHECK(split(split_on(dash, "MergedWithPrevious", false), text) ==
          Strings{"the-", "final-", "-", "countdown"});
    CHECK(split(split_on(dash, "MergedWithNext", false), text) ==
          Strings{"the", "-final", "-", "-countdown"});
    CHECK(split(split_on(dash, "Contiguous", false), text) ==
          Strings{"the", "-", "final", "--", "countdown"});
    CHECK(split(split_on(dash, "MergedWithPrevious", false), "-a") == Strings{"-", "a"});
    CHECK(split(split_on(dash, "MergedWithNext", false), "a-") == Strings{"a", "-"});
    CHECK(split(split_on(R"({"String": ""})", "Isolated", false), "ab") == Strings{"ab"});
  }

  TEST_CASE("pre-tokenizer: inverted split") {
    const std::string words = R"({"Regex": "\\w+"})";
    CHECK(split(split_on(words, "Removed", true), "a, b!") == Strings{"a", "b"});
    CHECK(split(split_on(words, "Removed", false), "a, b!") == Strings{", ", "!"});
    CHECK(split(split_on(words, "MergedWithPrevious", true), "a, b!") == Strings{"a, ", "b!"});
  }

  TEST_CASE("pre-tokenizer: white space, punctuation, digits") {
    CHECK(split(R"({"type": "Whitespace"})", "Hey friend!   How\u3000are_you?!") ==
          Strings{"Hey", "friend", "!", "How", "are_you", "?!"});
    CHECK(split(R"({"type": "Whitespace"})", "e\u0301\u20ac 5\u24b6") ==
          Strings{"e\u0301", "\u20ac", "5\u24b6"});
    CHECK(split(R"({"type": "WhitespaceSplit"})", " Hey  friend!\n") == Strings{"Hey", "friend!"});
    CHECK(split(R"({"type": "Punctuation"})", "Hey!? \u00bfno\u3002$") ==
          Strings{"Hey", "!", "?", " ", "\u00bf", "no", "\u3002", "$"});
    CHECK(split(R"({"type": "Punctuation", "behavior": "Contiguous"})", "Hey!?") ==
          Strings{"Hey", "!?"});
    CHECK(split(R"({"type": "Digits", "individual_digits": false})", "x123 \u00bd\u0664") ==
          Strings{"x", "123", " ", "\u00bd\u0664"});
    CHECK(split(R"({"type": "Digits", "individual_digits": true})", "x123") ==
          Strings{"x", "1", "2", "3"});
    CHECK(split(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                   {"type": "Digits", "individual_digits": true}]})",
                "a1 b") == Strings{"a", "1", "b"});
    CHECK(split(R"({"type": "Sequence", "pretokenizers": []})", "a b") == Strings{"a b"});
    for (const char* type : {"Whitespace", "WhitespaceSplit", "Punctuation", "Digits"}) {
      CHECK(split(std::string(R"({"type": ")") + type + "\"}", "").empty());
    }
  }

  TEST_CASE("regex: works on code points") {
    CHECK(matches(".", "a\U0001F600\n\u00e9") == Strings{"a", "\U0001F600", "\u00e9"});
    CHECK(matches("(?m).", "a\n") == Strings{"a", "\n"});
    CHECK(matches("^.", "ab\ncd\n") == Strings{"a", "c"});
    CHECK(matches("b?", "abc") == Strings{"", "b", ""});
    CHECK(matches("b*", "bab") == Strings{"b", "b"});
  }

  TEST_CASE("regex: classes are the ones tokenizer files mean") {
    // U+180E is no white space; combining marks and letter numbers are word characters.
    CHECK(matches("\\s+", "a \u180e\u00a0\u0085b") == Strings{" ", "\u00a0\u0085"});
    CHECK(matches("[^\\s\\p{L}\\p{N}]+", "a \u180e.") == Strings{"\u180e."});
    CHECK(matches("\\w+", "e\u0301\u2167-x_\u203f") == Strings{"e\u0301\u2167", "x_\u203f"});
    CHECK(matches("[\\w-]+", "e\u0301-x!") == Strings{"e\u0301-x"});
    CHECK(matches("\\W+", "e\u0301-!x") == Strings{"-!"});
    CHECK(matches("\\bx", "x ax e\u0301x -x") == Strings{"x", "x"});
    CHECK(matches("\\h+", "xfF9 ") == Strings{"fF9"});
    CHECK(matches("\\p{Han}+", "\u4e16\u754c\u3001") == Strings{"\u4e16\u754c"});
    CHECK(matches("\\p{^L}+", "a1b") == Strings{"1"});
    CHECK(matches("[[:digit:]]+", "a12") == Strings{"12"});
    CHECK(matches("[]a]+", "b]a") == Strings{"]a"});
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
    for (const char* pattern :
         {"[a&&b]", "[a[b]]", "[\\W]", "[^\\H]", "a\\K", "(*ACCEPT)", "a\\"}) {
      CAPTURE(pattern);
      const auto regex = TextRegex::compile(pattern, "place");
      REQUIRE_FALSE(regex.ok());
      CHECK(regex.error().code == ErrorCode::kUnsupported);
      CHECK(regex.error().message.find("[place]") != std::string::npos);
    }
    for (const char* pattern : {"(", "[a", "\\p{NoSuchThing}", "*"}) {
      CAPTURE(pattern);
      CHECK(TextRegex::compile(pattern, "place").error().code == ErrorCode::kInvalidFile);
    }
    CHECK_FALSE(TextRegex::compile(std::string(100'000, 'a'), "place").ok());
    // Exponential backtracking ends with an error.
    const auto slow = TextRegex::compile("(a+)+$", "place");
    REQUIRE(slow.ok());
    CHECK_FALSE(slow->find_all(std::u32string(40, U'a') + U"b").ok());
  }
}
