// Normalizers, with the alignment they carry.
#include "base/check.h"
#include "checkpoint/temp_dir.h"
#include "text/normalizers.h"
#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

struct NormalizedText {
  std::string text;
  Ranges ranges;

  bool operator==(const NormalizedText&) const = default;
};

std::ostream& operator<<(std::ostream& out, const NormalizedText& value) {
  out << '"' << value.text << '"';
  for (const auto& [begin, end] : value.ranges) out << ' ' << begin << '-' << end;
  return out;
}

NormalizedText normalize(const std::string& normalizer, const std::string& text) {
  const auto document = nlohmann::json::parse(normalizer);
  const auto made = parse_normalizer(JsonRef(document, "normalizer"));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  AlignedText aligned(decode_utf8(text, "text").value());
  REQUIRE((*made)->apply(aligned).ok());
  NormalizedText out{encode_utf8(aligned.chars()), {}};
  for (size_t i = 0; i < aligned.size(); ++i) {
    const CharSpan range = aligned.original_range(i, i + 1);
    out.ranges.emplace_back(range.begin, range.end);
  }
  return out;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("normalizer: composition keeps the place of the first character") {
    CHECK(normalize(R"({"type": "NFC"})", "xe\u0301y") ==
          NormalizedText{"x\u00e9y", {{0, 1}, {1, 2}, {3, 4}}});
    // The mark below stays, the one above joins the letter across it.
    CHECK(normalize(R"({"type": "NFC"})", "q\u0327\u0301a\u0301\u0327") ==
          NormalizedText{"q\u0327\u0301\u00e1\u0327", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {5, 6}}});
    CHECK(normalize(R"({"type": "NFC"})", "\u1112\u1161\u11ab") ==
          NormalizedText{"\ud55c", {{0, 1}}});
    // Composition exclusions stay apart.
    CHECK(normalize(R"({"type": "NFC"})", "\u0958").text == "\u0915\u093c");
    CHECK(normalize(R"({"type": "NFC"})", "\u212b").text == "\u00c5");
  }

  TEST_CASE("normalizer: decomposition gives each part the whole character's place") {
    CHECK(normalize(R"({"type": "NFD"})", "\u00e9!") ==
          NormalizedText{"e\u0301!", {{0, 1}, {0, 1}, {1, 2}}});
    CHECK(normalize(R"({"type": "NFD"})", "\ufb01").text == "\ufb01");
    CHECK(normalize(R"({"type": "NFKD"})", "\ufb01x") ==
          NormalizedText{"fix", {{0, 1}, {0, 1}, {1, 2}}});
    CHECK(normalize(R"({"type": "NFKC"})", "\uff76\uff9e") == NormalizedText{"\u30ac", {{0, 1}}});
    // Marks are put into canonical order: class 220 before 230.
    CHECK(normalize(R"({"type": "NFD"})", "a\u0301\u0323").text == "a\u0323\u0301");
    CHECK(normalize(R"({"type": "NFKC"})", "\ufdfa").ranges.size() == 18);
  }

  TEST_CASE("normalizer: lower case is the full mapping") {
    CHECK(normalize(R"({"type": "Lowercase"})", "A\u0130Z") ==
          NormalizedText{"ai\u0307z", {{0, 1}, {1, 2}, {1, 2}, {2, 3}}});
    CHECK(normalize(R"({"type": "Lowercase"})", "\u00c4\u03a3\u1e9e").text == "\u00e4\u03c3\u00df");
  }

  TEST_CASE("normalizer: strip and strip accents") {
    CHECK(normalize(R"({"type": "Strip", "strip_left": true, "strip_right": true})",
                    " \u3000a b\n") == NormalizedText{"a b", {{2, 3}, {3, 4}, {4, 5}}});
    CHECK(normalize(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " \u00e4 ")
              .text == " \u00e4");
    CHECK(normalize(R"({"type": "Strip"})", " \t ").text.empty());
    CHECK(normalize(
              R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]})",
              "d\u00e9j\u00e0") == NormalizedText{"deja", {{0, 1}, {1, 2}, {2, 3}, {3, 4}}});
  }

  TEST_CASE("normalizer: replace and prepend") {
    CHECK(normalize(R"({"type": "Replace", "pattern": {"String": "``"}, "content": "\""})",
                    "``a``") == NormalizedText{"\"a\"", {{1, 2}, {2, 3}, {4, 5}}});
    CHECK(normalize(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "--"})",
                    "a   b") == NormalizedText{"a--b", {{0, 1}, {3, 4}, {3, 4}, {4, 5}}});
    CHECK(
        normalize(R"({"type": "Replace", "pattern": {"String": ""}, "content": "x"})", "ab").text ==
        "ab");
    CHECK(normalize(R"({"type": "Replace", "pattern": {"String": "a"}, "content": ""})", "banana")
              .text == "bnn");
    CHECK(normalize(R"({"type": "Prepend", "prepend": "\u2581_"})", "ab") ==
          NormalizedText{"\u2581_ab", {{0, 1}, {0, 1}, {0, 1}, {1, 2}}});
    CHECK(normalize(R"({"type": "Prepend", "prepend": "_"})", "").text.empty());
  }

  TEST_CASE("normalizer: an empty text stays empty") {
    for (const char* type : {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents"}) {
      CHECK(normalize(std::string(R"({"type": ")") + type + "\"}", "").text.empty());
    }
  }

  TEST_CASE("normalizer: steps that multiply a text stop at a stated size") {
    const std::string limit = std::to_string(kMostNormalized);
    const auto check_stops = [&](const std::string& normalizer, const std::string& text) {
      const auto document = nlohmann::json::parse(normalizer);
      const auto made = parse_normalizer(JsonRef(document, "normalizer"));
      REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
      AlignedText aligned(decode_utf8(text, "text").value());
      const Status status = (*made)->apply(aligned);
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().code == ErrorCode::kInvalidArgument);
      CHECK_MESSAGE(contains(status.error().message, limit), status.error().message);
    };
    nlohmann::json steps;
    for (int i = 0; i < 40; ++i) {
      steps.push_back(
          {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaa"}});
    }
    check_stops(nlohmann::json{{"type", "Sequence"}, {"normalizers", steps}}.dump(), "a");
    const std::string long_text(1 << 20, 'a');
    check_stops(
        nlohmann::json{{"type", "Replace"}, {"pattern", {{"Regex", "."}}}, {"content", long_text}}
            .dump(),
        std::string(40, 'b'));
    steps.clear();
    for (int i = 0; i < 40; ++i) steps.push_back({{"type", "Prepend"}, {"prepend", long_text}});
    check_stops(nlohmann::json{{"type", "Sequence"}, {"normalizers", steps}}.dump(), "b");
    // Forms that decompose: U+FDFA is 18 characters.
    std::string ligatures;
    for (int i = 0; i < 1 << 17; ++i) ligatures += "\ufdfa";
    steps.clear();
    for (int i = 0; i < 4; ++i) {
      steps.push_back({{"type", "NFKD"}});
      steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", "."}}}, {"content", "\ufdfa"}});
    }
    check_stops(nlohmann::json{{"type", "Sequence"}, {"normalizers", steps}}.dump(), ligatures);
  }

  TEST_CASE("normalizer: a long text that is not made longer has no limit") {
    CHECK(check_growth(kMostNormalized * 2, kMostNormalized * 2).ok());
    CHECK(check_growth(1, kMostNormalized).ok());
    CHECK_FALSE(check_growth(1, kMostNormalized + 1).ok());
    CHECK_FALSE(check_growth(kMostNormalized * 2, kMostNormalized * 2 + 1).ok());
  }
}
