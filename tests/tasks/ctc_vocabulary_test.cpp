// Texts of frames' classes: what Wav2Vec2CTCTokenizer of transformers 5.12 decodes of the same ids.
#include "tasks/ctc_vocabulary.h"

#include <doctest/doctest.h>

#include "checkpoint/temp_dir.h"
#include "text/tokenizer_engine.h"

namespace vkformer {
namespace {

constexpr const char* kVocabulary =
    R"({"[PAD]": 0, "[UNK]": 1, "|": 2, "É": 3, "b": 4, "ch": 5, " ": 6, "ï": 7})";

CtcSettings settings_of_test() {
  CtcSettings settings;
  settings.pad = "[PAD]";
  settings.unknown = "[UNK]";
  return settings;
}

// The text, then each word with its frames: "É b; É 0-2; b 3-4".
std::string heard(const CtcSettings& settings, const std::vector<TokenId>& classes) {
  auto vocabulary = CtcVocabulary::parse(kVocabulary, "vocab.json", settings);
  REQUIRE_MESSAGE(vocabulary.ok(), vocabulary.error().message);
  vocabulary->add(9, "</s>");
  vocabulary->add(4, "not the vocabulary's own");
  const auto text = vocabulary->decode(classes);
  REQUIRE_MESSAGE(text.ok(), text.error().message);
  std::string all = text->text;
  for (const FrameWord& word : text->words) {
    all += "; " + word.text + " " + std::to_string(word.begin) + "-" + std::to_string(word.end);
  }
  return all;
}

void check_vocabulary_refused(const char* json, const CtcSettings& settings,
                              const std::vector<std::string>& parts) {
  const auto made = CtcVocabulary::parse(json, "vocab.json", settings);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == ErrorCode::kInvalidFile);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(made.error().message, part), made.error().message);
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("ctc: repeats count once, blanks part them, and words have their frames") {
    const std::vector<TokenId> mixed = {2, 2, 3, 3, 0, 3, 4, 2, 0, 2, 5, 5, 0, 5, 9, 9, 1, 0};
    const std::vector<TokenId> spaced = {6, 3, 2, 6, 4, 7};
    CtcSettings settings = settings_of_test();
    CHECK(heard(settings, mixed) == "ÉÉb  chch</s>[UNK]; ÉÉb 2-7; chch</s>[UNK] 10-17");
    CHECK(heard(settings, spaced) == "É  bï; É 1-2; bï 4-6");
    CHECK(heard(settings, {0, 0, 2}).empty());
    CHECK(heard(settings, {}).empty());
    CHECK(heard(settings, {4, 2}) == "b; b 0-1");
    CHECK(heard(settings, {77}) == "[UNK]; [UNK] 0-1");
    settings.space = "_";
    CHECK(heard(settings, mixed) == "_ÉÉb__chch</s>[UNK]; ÉÉb 2-7; chch</s>[UNK] 10-17");
    CHECK(heard(settings, spaced) == "É_ bï;  É 0-2;  bï 3-6");
  }

  TEST_CASE("ctc: lower case is that of the text and of its words") {
    CtcSettings settings = settings_of_test();
    settings.lowers = true;
    CHECK(heard(settings, {3, 2, 1}) == "é [unk]; é 0-1; [unk] 2-3");
  }

  TEST_CASE("ctc: one of several vocabularies is chosen by language") {
    constexpr const char* kSeveral = R"({"eng": {"a": 1}, "deu": {"ä": 1}})";
    CtcSettings settings = settings_of_test();
    settings.language = "deu";
    const auto made = CtcVocabulary::parse(kSeveral, "vocab.json", settings);
    REQUIRE(made.ok());
    CHECK(made->decode(std::vector<TokenId>{1})->text == "ä");
    settings.language = "fra";
    check_vocabulary_refused(kSeveral, settings, {"deu, eng", "'fra'", "target_lang"});
  }

  TEST_CASE("ctc: pieces of a tokenizer.json make words with their frames") {
    constexpr const char* kPieces = R"({"version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                    "split": true},
        "model": {"type": "WordLevel", "unk_token": "<unk>",
                  "vocab": {"<unk>": 0, "▁he": 1, "llo": 2, "▁you": 3, "<blank>": 4}}})";
    const auto tokenizer = TokenizerEngine::parse(kPieces, "tokenizer.json");
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
    const std::vector<TokenId> classes = {4, 1, 1, 2, 4, 2, 3, 3};
    const auto text = decode_frames(**tokenizer, 4, classes);
    REQUIRE(text.ok());
    CHECK(text->text == "hellollo you");
    REQUIRE(text->words.size() == 2);
    CHECK(text->words[0].text == "hellollo");
    CHECK(text->words[0].begin == 1);
    CHECK(text->words[0].end == 6);
    CHECK(text->words[1].text == "you");
    CHECK(text->words[1].begin == 6);
    CHECK(text->words[1].end == 8);
    CHECK(decode_frames(**tokenizer, 4, std::vector<TokenId>{4, 4})->words.empty());
  }

  TEST_CASE("ctc: what is not a vocabulary is refused") {
    const CtcSettings settings = settings_of_test();
    check_vocabulary_refused("[1]", settings, {"vocab.json", "object"});
    check_vocabulary_refused("{", settings, {"vocab.json"});
    check_vocabulary_refused(R"({"a": -1})", settings, {"vocab.json a"});
    check_vocabulary_refused(R"({"a": "b"})", settings, {"vocab.json a"});
  }
}

}  // namespace vkformer
