// Metaspace, both ways.
#include "text/metaspace.h"

#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Strings = std::vector<std::string>;

struct Cut {
  Strings words;
  Ranges ranges;

  bool operator==(const Cut&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Cut& value) {
  for (size_t i = 0; i < value.words.size(); ++i) {
    out << '"' << value.words[i] << "\" " << value.ranges[i].first << '-' << value.ranges[i].second
        << ' ';
  }
  return out;
}

std::string metaspace(const std::string& settings) {
  return R"({"type": "Metaspace", "replacement": "▁")" + settings + "}";
}

Cut cut(const std::string& settings, const AlignedText& text) {
  const auto document = nlohmann::json::parse(settings);
  const auto made = parse_pre_tokenizer(JsonRef(document, "pre_tokenizer"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  WordList words(text);
  REQUIRE((*made)->apply(words).ok());
  Cut out;
  for (const CharSpan& word : words.words()) {
    out.words.push_back(encode_utf8(words.chars().substr(word.begin, word.end - word.begin)));
    const CharSpan range = words.text().original_range(word.begin, word.end);
    out.ranges.emplace_back(range.begin, range.end);
  }
  return out;
}

Cut cut(const std::string& settings, const std::string& text) {
  return cut(settings, AlignedText(decode_utf8(text, "text").value()));
}

std::string decoded_text(const std::string& settings, Strings tokens) {
  const auto document = nlohmann::json::parse(settings);
  const auto made = parse_decoder(JsonRef(document, "decoder"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  std::string text;
  const auto pieces = (*made)->decode(std::move(tokens));
  for (const std::string& piece : pieces.value()) text += piece;
  return text;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("metaspace: spaces become the replacement, words are cut in front of it") {
    CHECK(cut(metaspace(""), "Hey my friend") ==
          Cut{{"▁Hey", "▁my", "▁friend"}, {{0, 3}, {3, 6}, {6, 13}}});
    CHECK(cut(metaspace(""), " a  b ") ==
          Cut{{"▁a", "▁", "▁b", "▁"}, {{0, 2}, {2, 3}, {3, 5}, {5, 6}}});
    CHECK(cut(metaspace(""), "▁a▁b").words == Strings{"▁a", "▁b"});
    CHECK(cut(metaspace(""), "").words.empty());
    CHECK(cut(metaspace(R"(, "split": false)"), "a b") == Cut{{"▁a▁b"}, {{0, 3}}});
    CHECK(cut(metaspace(R"(, "split": null, "str_rep": "x")"), "a b").words == Strings{"▁a", "▁b"});
    CHECK(cut(R"({"type": "Metaspace", "replacement": "_"})", "a_b c").words ==
          Strings{"_a", "_b", "_c"});
    // Only the plain space counts.
    CHECK(cut(metaspace(""), "a\tb\u00a0c").words == Strings{"▁a\tb\u00a0c"});
  }

  TEST_CASE("metaspace: who gets a replacement in front") {
    const AlignedText text(decode_utf8("ab c", "text").value());
    CHECK(cut(metaspace(R"(, "prepend_scheme": "always")"), text.slice(1, 4)).words ==
          Strings{"▁b", "▁c"});
    CHECK(cut(metaspace(R"(, "prepend_scheme": "first")"), text.slice(1, 4)).words ==
          Strings{"b", "▁c"});
    CHECK(cut(metaspace(R"(, "prepend_scheme": "first")"), text.slice(0, 4)).words ==
          Strings{"▁ab", "▁c"});
    CHECK(cut(metaspace(R"(, "prepend_scheme": "never")"), text).words == Strings{"ab", "▁c"});
    // The first word is the one that starts where the text does, stripped or not.
    AlignedText stripped(decode_utf8(" b", "text").value());
    stripped.filter({0, 1});
    CHECK(cut(metaspace(R"(, "prepend_scheme": "first")"), stripped).words == Strings{"b"});
    const std::string words_first = R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"}, )";
    CHECK(cut(words_first + metaspace("") + "]}", "a  b").words == Strings{"▁a", "▁b"});
    CHECK(cut(words_first + metaspace(R"(, "prepend_scheme": "first")") + "]}", "a  b") ==
          Cut{{"▁a", "b"}, {{0, 1}, {3, 4}}});
  }

  TEST_CASE("metaspace: add_prefix_space of older files") {
    CHECK(cut(metaspace(R"(, "add_prefix_space": true)"), "a b").words == Strings{"▁a", "▁b"});
    CHECK(cut(metaspace(R"(, "add_prefix_space": false)"), "a b").words == Strings{"a", "▁b"});
    CHECK(cut(metaspace(R"(, "add_prefix_space": true, "prepend_scheme": "never")"), "a b").words ==
          Strings{"a", "▁b"});
  }

  TEST_CASE("metaspace: decoding") {
    CHECK(decoded_text(metaspace(""), {"▁Hey", "▁my", "▁friend", "."}) == "Hey my friend.");
    CHECK(decoded_text(metaspace(""), {"▁▁a", "b▁c▁", "▁"}) == "ab c  ");
    CHECK(decoded_text(metaspace(R"(, "prepend_scheme": "first")"), {"▁", "▁a"}) == " a");
    CHECK(decoded_text(metaspace(R"(, "prepend_scheme": "never")"), {"▁a", "▁b"}) == " a b");
    CHECK(decoded_text(metaspace(R"(, "add_prefix_space": false)"), {"▁a"}) == " a");
    CHECK(decoded_text(metaspace(""), {}).empty());
  }

  TEST_CASE("metaspace: damaged settings") {
    const auto fails = [](const std::string& settings, const std::string& says) {
      const auto document = nlohmann::json::parse(settings);
      for (const Error& error : {parse_pre_tokenizer(JsonRef(document, "step")).error(),
                                 parse_decoder(JsonRef(document, "step")).error()}) {
        CHECK_MESSAGE(error.message.find(says) != std::string::npos, error.message);
      }
    };
    fails(R"({"type": "Metaspace"})", "replacement");
    fails(R"({"type": "Metaspace", "replacement": ""})", "one character");
    fails(R"({"type": "Metaspace", "replacement": "ab"})", "one character");
    fails(metaspace(R"(, "prepend_scheme": "last")"), "always, first and never");
    fails(metaspace(R"(, "prepend_scheme": 1)"), "string");
    fails(metaspace(R"(, "add_prefix_space": false, "prepend_scheme": "first")"), "asks for never");
    fails(metaspace(R"(, "split": "yes")"), "true or false");
  }
}
