// The tokenizer of the shipped grapheme-to-phoneme model.
#include <filesystem>

#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

Tokenizer load_g2p() {
  auto loaded = Tokenizer::load(VKFORMER_SOURCE_DIR "/models/g2p-en");
  REQUIRE_MESSAGE(loaded.ok(), (loaded.ok() ? std::string() : loaded.error().message));
  return std::move(loaded).value();
}

using Ids = std::vector<TokenId>;

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("tokenizer: g2p-en spells a word and ends it") {
    const Tokenizer g2p = load_g2p();
    const Encoding word = encoded(g2p, "attention");
    CHECK(word.ids == Ids{3, 22, 22, 7, 16, 22, 11, 17, 16, 1});
    CHECK(word.tokens ==
          std::vector<std::string>{"a", "t", "t", "e", "n", "t", "i", "o", "n", "</s>"});
    CHECK(word.type_ids == Ids(10, 0));
    CHECK(word.attention_mask == Ids(10, 1));
    CHECK(ranges_of(word) ==
          Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}, {0, 0}});
    CHECK(encoded(g2p, "Attention").ids == word.ids);
    CHECK(encoded(g2p, "").ids == Ids{1});
    CHECK(g2p.vocab_size() == 101);
    CHECK(g2p.token_to_id("AH0") == 38);
    CHECK(g2p.id_to_token(100) == "ZH");
    CHECK_FALSE(g2p.token_to_id("AH3").has_value());
    CHECK_FALSE(g2p.id_to_token(101).has_value());
    CHECK_FALSE(g2p.id_to_token(-1).has_value());
    // Ids beyond 32 bits name no token, also where their lower half does.
    const TokenId far = (TokenId{1} << 32) + 5;
    REQUIRE(g2p.id_to_token(5).has_value());
    CHECK_FALSE(g2p.id_to_token(far).has_value());
    CHECK(*g2p.decode(Ids{5, far, 6}) == *g2p.decode(Ids{5, 6}));
    // Lists and ranges in braces are ids, too.
    const Ids some = {5, 6};
    CHECK(*g2p.decode({5, 6}) == *g2p.decode(some));
    CHECK(*g2p.decode({some.begin(), some.end()}) == *g2p.decode(some));
    CHECK(*g2p.decode({}) == "");
    CHECK(g2p.token_bytes(far)->empty());
  }

  TEST_CASE("tokenizer: g2p-en gives <unk> for other characters and keeps their place") {
    const Tokenizer g2p = load_g2p();
    // A full-width letter normalizes to a plain one, a ligature to two letters of one place.
    const Encoding odd = encoded(g2p, "Ａß\U0001F600ﬁ");
    CHECK(odd.tokens == std::vector<std::string>{"a", "<unk>", "<unk>", "f", "i", "</s>"});
    CHECK(odd.ids == Ids{3, 2, 2, 8, 11, 1});
    CHECK(ranges_of(odd) == Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {3, 4}, {0, 0}});
    // "." matches no newline, which is its own piece all the same.
    CHECK(encoded(g2p, "a\nb").ids == Ids{3, 2, 4, 1});
  }

  TEST_CASE("tokenizer: g2p-en finds special tokens in the text") {
    const Tokenizer g2p = load_g2p();
    const Encoding mixed = encoded(g2p, "a</s><pad>b");
    CHECK(mixed.ids == Ids{3, 1, 0, 4, 1});
    CHECK(ranges_of(mixed) == Ranges{{0, 1}, {1, 5}, {5, 10}, {10, 11}, {0, 0}});
    // They are looked for before lower-casing.
    CHECK(encoded(g2p, "</S>").ids.size() == 5);
  }

  TEST_CASE("tokenizer: g2p-en writes phonemes") {
    const Tokenizer g2p = load_g2p();
    const Ids phonemes = {0, 38, 88, 54 + 1, 76, 87, 38, 76, 1, 0};
    CHECK(g2p.decode(phonemes).value() == "AH0 T EH1 N SH AH0 N");
    CHECK(g2p.decode(Ids{0, 50, 1}, SpecialTokens::kInclude).value() == "<pad> B </s>");
    CHECK(g2p.decode(Ids{}).value().empty());
    CHECK(g2p.decode(Ids{50, 5000, 52}).value() == "B D");
    const auto negative = g2p.decode(Ids{50, -100});
    REQUIRE_FALSE(negative.ok());
    CHECK(negative.error().message.find("-100 at index 1") != std::string::npos);
  }

  TEST_CASE("tokenizer: g2p-en joins pairs and batches") {
    const Tokenizer g2p = load_g2p();
    const auto pair = g2p.encode_pair("ab", "c");
    REQUIRE(pair.ok());
    CHECK(pair->ids == Ids{3, 4, 5});
    CHECK(pair->type_ids == Ids{0, 0, 1});
    CHECK(ranges_of(*pair) == Ranges{{0, 1}, {1, 2}, {0, 1}});

    EncodeOptions options;
    options.padding.mode = PaddingMode::kToLongest;
    const std::vector<std::string> texts = {"cat", "", "o"};
    CHECK(g2p.encode_batch(texts, options).error().message.find("pad_id") != std::string::npos);
    options.padding.pad_id = 0;
    options.truncation.mode = TruncationMode::kToLength;
    options.truncation.max_length = 3;
    const auto batch = g2p.encode_batch(texts, options);
    REQUIRE(batch.ok());
    REQUIRE(batch->size() == 3);
    CHECK((*batch)[0].ids == Ids{5, 3, 1});
    CHECK((*batch)[1].ids == Ids{1, 0, 0});
    CHECK((*batch)[1].tokens == std::vector<std::string>{"</s>", "<pad>", "<pad>"});
    CHECK((*batch)[1].attention_mask == Ids{1, 0, 0});
    CHECK((*batch)[2].ids == Ids{17, 1, 0});
  }

  TEST_CASE("tokenizer: loads a file by its path and says what is missing") {
    CHECK(Tokenizer::load(VKFORMER_SOURCE_DIR "/models/g2p-en/tokenizer.json").ok());
    const auto missing = Tokenizer::load(VKFORMER_SOURCE_DIR "/models/no-such-model");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(missing.error().message.find("no-such-model") != std::string::npos);
  }
}
