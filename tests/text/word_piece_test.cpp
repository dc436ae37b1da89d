// The WordPiece model.
#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

// A tokenizer of a WordPiece model alone, split at white space.
std::string word_piece_json(const std::string& vocab, const std::string& settings = "") {
  return R"({"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": {"type": "WordPiece"},)"
         R"("model": {"type": "WordPiece", "vocab": )" +
         vocab + settings + "}}";
}

Tokenizer word_piece(const std::string& vocab, const std::string& settings = "") {
  auto made = Tokenizer::parse(word_piece_json(vocab, settings));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return std::move(made).value();
}

const std::string kVocab =
    R"({"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "##a": 4, "a": 5, "##b": 6, "ab": 7,
        "\u00e9": 8, "##\u00e9t": 9, "##\ud83d\ude00": 10, "##": 11, "#": 12, "##f": 13})";

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("word piece: the longest token first, then the longest continuing one") {
    const Tokenizer tokenizer = word_piece(kVocab);
    const Encoding out = encoded(tokenizer, "unaffable ab abb");
    CHECK(out.ids == Ids{1, 2, 3, 7, 7, 6});
    CHECK(out.tokens == Strings{"un", "##aff", "##able", "ab", "ab", "##b"});
    CHECK(ranges_of(out) == Ranges{{0, 2}, {2, 5}, {5, 9}, {10, 12}, {13, 15}, {15, 16}});
  }

  TEST_CASE("word piece: a word that cannot be cut to its end is unknown as a whole") {
    const Tokenizer tokenizer = word_piece(kVocab);
    const Encoding out = encoded(tokenizer, "unaffx ab xun");
    CHECK(out.ids == Ids{0, 7, 0});
    CHECK(out.tokens == Strings{"[UNK]", "ab", "[UNK]"});
    CHECK(ranges_of(out) == Ranges{{0, 6}, {7, 9}, {10, 13}});
  }

  TEST_CASE("word piece: characters, not bytes, are counted and cut") {
    const Tokenizer tokenizer = word_piece(kVocab);
    const Encoding out = encoded(tokenizer, "\u00e9\u00e9t\U0001F600 \u00e9\u00e8");
    CHECK(out.ids == Ids{8, 9, 10, 0});
    CHECK(ranges_of(out) == Ranges{{0, 1}, {1, 3}, {3, 4}, {5, 7}});
    const Tokenizer short_words = word_piece(kVocab, R"(, "max_input_chars_per_word": 4)");
    CHECK(encoded(short_words, "\u00e9\u00e9t\U0001F600").ids == Ids{8, 9, 10});
    CHECK(encoded(short_words, "\u00e9\u00e9t\U0001F600a").ids == Ids{0});
  }

  TEST_CASE("word piece: a text may spell the prefix itself") {
    const Tokenizer tokenizer = word_piece(kVocab);
    CHECK(encoded(tokenizer, "##a ## # ##x").ids == Ids{4, 11, 12, 0});
  }

  TEST_CASE("word piece: other prefixes, and none") {
    const std::string vocab = R"({"[UNK]": 0, "a": 1, "b": 2, "+b": 3, "ab": 4})";
    CHECK(encoded(word_piece(vocab, R"(, "continuing_subword_prefix": "+")"), "abb aa").ids ==
          Ids{4, 3, 0});
    CHECK(encoded(word_piece(vocab, R"(, "continuing_subword_prefix": "")"), "abb baa").ids ==
          Ids{4, 2, 2, 1, 1});
    CHECK(encoded(word_piece(vocab, R"(, "continuing_subword_prefix": "@@")"), "ab abb").ids ==
          Ids{4, 0});
  }

  TEST_CASE("word piece: very long words") {
    const std::string vocab = R"({"?": 0, "a": 1, "##a": 2, "##aaa": 3})";
    const Tokenizer tokenizer =
        word_piece(vocab, R"(, "unk_token": "?", "max_input_chars_per_word": 1000000)");
    const Encoding out = encoded(tokenizer, std::string(100001, 'a'));
    CHECK(out.ids.size() == 1 + 33333 + 1);
    CHECK(out.ids.back() == 2);
    CHECK(ranges_of(out).back() == std::pair<int32_t, int32_t>(100000, 100001));
    CHECK(encoded(tokenizer, std::string(100001, 'a') + "b").ids == Ids{0});
  }

  TEST_CASE("word piece: an unknown token that the vocabulary lacks") {
    const Tokenizer tokenizer = word_piece(R"({"a": 0})", R"(, "unk_token": "<unk>")");
    CHECK(encoded(tokenizer, "a").ids == Ids{0});
    const auto failed = tokenizer.encode("a xyz");
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().message.find("[xyz]") != std::string::npos);
    CHECK(failed.error().message.find("[<unk>]") != std::string::npos);
  }

  TEST_CASE("word piece: settings of another type are refused") {
    const std::pair<const char*, const char*> cases[] = {
        {R"(, "max_input_chars_per_word": "many")", "max_input_chars_per_word"},
        {R"(, "max_input_chars_per_word": -1)", "max_input_chars_per_word"},
        {R"(, "continuing_subword_prefix": 7)", "continuing_subword_prefix"},
        {R"(, "unk_token": [])", "unk_token"},
    };
    for (const auto& [settings, says] : cases) {
      const auto made = Tokenizer::parse(word_piece_json(kVocab, settings));
      REQUIRE_FALSE(made.ok());
      CHECK(made.error().code == ErrorCode::kInvalidFile);
      CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
    }
    CHECK_FALSE(Tokenizer::parse(R"({"model": {"type": "WordPiece"}})").ok());
  }

  TEST_CASE("word piece: an empty vocabulary can encode nothing but the empty text") {
    const Tokenizer tokenizer = word_piece("{}");
    CHECK(encoded(tokenizer, "").ids.empty());
    CHECK_FALSE(tokenizer.encode("a").ok());
  }
}
