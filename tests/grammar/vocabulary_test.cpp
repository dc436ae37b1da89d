#include <array>

#include "grammar/grammar_walk.h"
#include "text/tokenizer_files.h"

using namespace vkformer;
using test::is_allowed;

namespace {

std::string bytes(const Tokenizer& tokenizer, TokenId id) {
  const auto made = tokenizer.token_bytes(id);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? std::string() : made.error().message));
  return *made;
}

Tokenizer with_decoder(const std::string& decoder, const std::string& vocab) {
  test::TokenizerParts parts;
  parts.decoder = decoder;
  parts.vocab = vocab;
  parts.added_tokens = R"([{"id": 9, "content": "</s>", "special": true}])";
  return test::make_tokenizer(parts);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("token bytes: what tokens add behind others") {
    const Tokenizer byte_level =
        with_decoder(R"({"type": "ByteLevel"})", "{\"[UNK]\": 0, \"\u0120a\": 1, \"\u00c3\": 2}");
    CHECK(bytes(byte_level, 1) == " a");
    CHECK(bytes(byte_level, 2) == "\xC3");
    CHECK(bytes(byte_level, 9).empty());
    CHECK(bytes(byte_level, 77).empty());
    CHECK_FALSE(byte_level.token_bytes(-1).ok());
    const Tokenizer fallback = with_decoder(
        R"({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
        "{\"[UNK]\": 0, \"\u2581a\": 1, \"<0xC3>\": 2, \"\u2581\": 3}");
    CHECK(bytes(fallback, 1) == " a");
    CHECK(bytes(fallback, 2) == "\xC3");
    CHECK(bytes(fallback, 3) == " ");
    const Tokenizer metaspace = with_decoder(
        R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})",
        "{\"[UNK]\": 0, \"\u2581a\": 1, \"b\": 2}");
    CHECK(bytes(metaspace, 1) == " a");
    CHECK(bytes(metaspace, 2) == "b");
    const Tokenizer pieces =
        with_decoder(R"({"type": "WordPiece", "prefix": "##", "cleanup": false})",
                     R"({"[UNK]": 0, "a": 1, "##b": 2})");
    CHECK(bytes(pieces, 1) == " a");
    CHECK(bytes(pieces, 2) == "b");
    const Tokenizer plain = with_decoder("null", R"({"[UNK]": 0, "a": 1})");
    CHECK(bytes(plain, 1) == " a");
    const Tokenizer late = with_decoder(
        R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
            {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}]})",
        R"({"[UNK]": 0, "a": 1})");
    const auto refused = late.token_bytes(1);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("joins them") != std::string::npos);
  }

  TEST_CASE("token bytes: a constraint over a tokenizer") {
    const Tokenizer tokenizer =
        with_decoder(R"({"type": "ByteLevel"})",
                     "{\"[UNK]\": 0, \"\u0120a\": 1, \"\u00c3\": 2, \"\u00a9\": 3, \"a\": 4}");
    const std::array<TokenId, 1> end = {9};
    const auto vocabulary = GrammarVocabulary::create(tokenizer, 10, end);
    REQUIRE(vocabulary.ok());
    const auto grammar = Grammar::from_gbnf("root ::= \"a a\" \"\xC3\xA9\"");
    REQUIRE(grammar.ok());
    auto constraint = GrammarConstraint::create(*grammar, *vocabulary);
    REQUIRE(constraint.ok());
    GrammarState state = constraint->start();
    for (const TokenId token : {4, 1, 2, 3, 9}) {
      const auto allowed = constraint->allowed(state);
      REQUIRE(allowed.ok());
      for (size_t i = 0; i < 10; ++i) {
        CHECK(is_allowed(*allowed, i) == (static_cast<TokenId>(i) == token));
      }
      auto next = constraint->accept(state, token);
      REQUIRE(next.ok());
      state = *next;
    }
    CHECK(state.has_ended());
    CHECK_FALSE(GrammarVocabulary::create(tokenizer, 0, end).ok());
    CHECK_FALSE(GrammarVocabulary::create(tokenizer, 5, end).ok());
  }
}
