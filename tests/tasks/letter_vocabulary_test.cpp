// Texts as tokens of models that speak: what VitsTokenizer of transformers 5.12 makes of the same
// texts.
#include "tasks/letter_vocabulary.h"

#include <doctest/doctest.h>

#include "checkpoint/temp_dir.h"

namespace vkformer {
namespace {

using Ids = std::vector<TokenId>;
using Written = LetterVocabulary::Written;

// "k" is 0, the letters from a to z without it 1 to 25, then space, quote, hyphen, underscore.
std::string vocabulary_json() {
  std::string json = "{\"k\": 0";
  TokenId next = 1;
  for (const char c : std::string("abcdefghijlmnopqrstuvwxyz '-_")) {
    json += ", \"" + std::string(1, c) + "\": " + std::to_string(next++);
  }
  return json + "}";
}

LetterSettings letters() {
  LetterSettings settings;
  settings.language = "eng";
  settings.phonemizes = false;
  return settings;
}

Result<Ids> encoded(const LetterSettings& settings, const std::string& text,
                    Written written = Written::kLetters) {
  const auto vocabulary = LetterVocabulary::parse(vocabulary_json(), "vocab.json", settings);
  REQUIRE_MESSAGE(vocabulary.ok(), vocabulary.error().message);
  return vocabulary->encode(text, written);
}

Ids ids_of(const LetterSettings& settings, const std::string& text,
           Written written = Written::kLetters) {
  const auto ids = encoded(settings, text, written);
  REQUIRE_MESSAGE(ids.ok(), ids.error().message);
  return *ids;
}

void check_refused_text(const LetterSettings& settings, const std::string& text, ErrorCode code,
                        const std::string& part) {
  const auto ids = encoded(settings, text);
  REQUIRE_FALSE(ids.ok());
  CHECK(ids.error().code == code);
  CHECK_MESSAGE(test::contains(ids.error().message, part), ids.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("letters: lower case, without punctuation, with blanks between") {
    CHECK(ids_of(letters(), "Hello!") == Ids{0, 8, 0, 5, 0, 11, 0, 11, 0, 14, 0});
    CHECK(ids_of(letters(), " A k ") == Ids{0, 1, 0, 26, 0, 0, 0});
    CHECK(ids_of(letters(), "İx Σ") == Ids{0, 9, 0, 23, 0});
    CHECK(ids_of(letters(), "<pad>a") == Ids{0, 15, 0, 1, 0, 4, 0, 1, 0});
    LetterSettings plain = letters();
    plain.blanks = false;
    CHECK(ids_of(plain, "Ab") == Ids{1, 2});
  }

  TEST_CASE("letters: a special token has no blanks of its own") {
    LetterSettings settings = letters();
    settings.pad = "k";
    CHECK(ids_of(settings, " A k ") == Ids{0, 1, 0, 26, 0, 0});
    CHECK(ids_of(settings, "kk") == Ids{0, 0});
    CHECK(ids_of(settings, "x<unk>y") == Ids{0, 23, 0, 20, 0, 13, 0, 0, 0, 24, 0});
  }

  TEST_CASE("letters: without normalizing, what is unknown is the unknown token") {
    LetterSettings settings = letters();
    settings.normalizes = false;
    settings.added = {{"<unk>", 30}};
    CHECK(ids_of(settings, " A ") == Ids{0, 26, 0, 30, 0, 26, 0});
    CHECK(ids_of(settings, "x<unk>y") == Ids{0, 23, 0, 30, 0, 24, 0});
    CHECK(ids_of(settings, "é") == Ids{0, 30, 0});
    settings.added.clear();
    check_refused_text(settings, "aB", ErrorCode::kInvalidArgument, "[text] has 'B'");
  }

  TEST_CASE("letters: phonemes and other scripts are asked for, not made") {
    LetterSettings settings = letters();
    settings.phonemizes = true;
    check_refused_text(settings, "hello", ErrorCode::kUnsupported, "[phonemize]");
    CHECK(ids_of(settings, "ab", Written::kPhonemes) == Ids{0, 1, 0, 2, 0});
    settings = letters();
    settings.romanizes = true;
    check_refused_text(settings, "да", ErrorCode::kUnsupported, "is_uroman");
    CHECK(ids_of(settings, "da") == Ids{0, 4, 0, 1, 0});
  }

  TEST_CASE("letters: texts without a letter, bad UTF-8 and bad files are refused") {
    for (const char* text : {"", "!?", "é1", "  "}) {
      check_refused_text(letters(), text, ErrorCode::kInvalidArgument, "has no character");
    }
    CHECK_FALSE(encoded(letters(), "a\xff").ok());
    for (const char* json : {"[]", "{\"a\": \"b\"}", "{\"a\": -1}", "{", "3"}) {
      const auto made = LetterVocabulary::parse(json, "vocab.json", letters());
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().code == ErrorCode::kInvalidFile);
      CHECK(test::contains(made.error().message, "vocab.json"));
    }
  }
}

}  // namespace vkformer
