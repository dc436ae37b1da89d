// Pre-tokenizers.
#include "text/pre_tokenizers.h"

#include "text/tokenizer_files.h"
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

  TEST_CASE("pre-tokenizer: scripts") {
    const std::string scripts = R"({"type": "UnicodeScripts"})";
    CHECK(split(scripts, "どこで生れ。Yes") == Strings{"どこで生れ", "。", "Yes"});
    CHECK(split(scripts, "Apples are りんご 林檎") == Strings{"Apples are ", "りんご 林檎"});
    // The sound mark of Japanese is common to two scripts; digits and signs are a script of their
    // own.
    CHECK(split(scripts, "コーヒーa1b") == Strings{"コーヒー", "a", "1", "b"});
    // Spaces in front belong to no word, and so does a text of nothing else.
    CHECK(split(scripts, "  ab") == Strings{"ab"});
    CHECK(split(scripts, "   ").empty());
    // Scripts are those of Unicode 9: U+058A got Armenian in 1.0 and U+0589 in 12. U+1F8C is Greek,
    // and a letter of Unicode 16 has no script.
    CHECK(split(scripts, "\u0561\u0589") == Strings{"\u0561", "\u0589"});
    CHECK(split(scripts, "a\u1c89b\u0431") == Strings{"a\u1c89b", "\u0431"});
    CHECK(split(scripts, "").empty());
  }

  TEST_CASE("pre-tokenizer: classes of characters are of Unicode 16") {
    // A letter and a digit that came with 16.0, and a letter of 17.0.
    const std::string whitespace = R"({"type": "Whitespace"})";
    CHECK(split(whitespace, "a\u1c89!") == Strings{"a\u1c89", "!"});
    CHECK(split(whitespace, "a\ua7ce!") == Strings{"a", "\ua7ce!"});
    // Superscripts and fractions are no words here, while \\w of patterns takes them.
    CHECK(split(whitespace, "x\u00b2 \u00bd") == Strings{"x", "\u00b2", "\u00bd"});
    const std::string digits = R"({"type": "Digits", "individual_digits": true})";
    CHECK(split(digits, "a\U00010d42\u00b2") == Strings{"a", "\U00010d42", "\u00b2"});
  }
}
