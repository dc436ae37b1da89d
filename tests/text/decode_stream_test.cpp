// Streaming decode: the same text as decode(), in pieces that are whole characters.
#include <optional>
#include <random>

#include "text/decoders.h"
#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

// A tokenizer with the tokens 0, 1, 2, ...
Tokenizer with_tokens(const Strings& tokens, const std::string& decoder) {
  nlohmann::json vocab = nlohmann::json::object();
  for (size_t i = 0; i < tokens.size(); ++i) vocab[tokens[i]] = i;
  TokenizerParts parts;
  parts.vocab = vocab.dump();
  parts.decoder = decoder;
  return make_tokenizer(parts);
}

// What each id gives, and the rest at the end.
Strings streamed(const Tokenizer& tokenizer, const Ids& ids,
                 SpecialTokens special_tokens = SpecialTokens::kExclude) {
  DecodeStream stream = tokenizer.decode_stream(special_tokens);
  Strings out;
  for (const TokenId id : ids) {
    const auto text = stream.push(id);
    REQUIRE_MESSAGE(text.ok(), (text.ok() ? std::string() : text.error().message));
    out.push_back(*text);
  }
  const auto rest = stream.finish();
  REQUIRE(rest.ok());
  out.push_back(*rest);
  return out;
}

void check_equal(const Tokenizer& tokenizer, const Ids& ids) {
  std::string whole;
  for (const std::string& piece : streamed(tokenizer, ids)) {
    CHECK(decode_utf8(piece, "piece").ok());
    whole += piece;
  }
  const auto wanted = tokenizer.decode(ids);
  REQUIRE(wanted.ok());
  CHECK(whole == *wanted);
}

const Strings kOddTokens = {"a",
                            "##b",
                            "##",
                            ".",
                            "n't",
                            " ' ",
                            "\u2581",
                            "\u2581c",
                            "\u2581\u2581",
                            "<0xE2>",
                            "<0x82>",
                            "<0xAC>",
                            "<0xFF>",
                            "<0x41>",
                            "</w>",
                            "d</w>",
                            "e",
                            "\u0120f",
                            "\u00e2",
                            "\u0124",
                            "\u00ac",
                            "\u0120",
                            "\u00f0",
                            "\u0141",
                            "\u20ac",
                            " ",
                            "  x  ",
                            "x ",
                            " do not",
                            "",
                            "\U0001F600",
                            "\u00c3",
                            "\u00a9",
                            "\u00e2\u0124\u00ac"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("decode stream: word pieces come at once") {
    const Tokenizer tokenizer =
        with_tokens({"un", "##able", "day", "n't", "."}, R"({"type": "WordPiece"})");
    CHECK(streamed(tokenizer, {0, 1, 2, 3, 4}) == Strings{"un", "able", " day", "n't", ".", ""});
  }

  TEST_CASE("decode stream: byte-level text waits for whole characters") {
    const Tokenizer tokenizer =
        with_tokens({"a", "\u00e2", "\u0124", "\u00ac", "\u0120b"}, R"({"type": "ByteLevel"})");
    CHECK(streamed(tokenizer, {0, 1, 2, 3, 4}) == Strings{"a", "", "", "\u20ac", " b", ""});
    // A sequence that breaks off is one error, and so is one that never ends.
    CHECK(streamed(tokenizer, {1, 2, 0}) == Strings{"", "", "\ufffda", ""});
    CHECK(streamed(tokenizer, {0, 1, 2}) == Strings{"a", "", "", "\ufffd"});
  }

  TEST_CASE("decode stream: byte tokens wait for the last of them") {
    const Tokenizer tokenizer = with_tokens({"\u2581a", "<0xE2>", "<0x82>", "<0xAC>", "\u2581"}, R"(
        {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
    CHECK(streamed(tokenizer, {0, 0, 1, 2, 3, 0}) ==
          Strings{"a", " a", "", "", "", "\u20ac a", ""});
    CHECK(streamed(tokenizer, {1, 2, 0}) == Strings{"", "", "\ufffd\ufffd a", ""});
    CHECK(streamed(tokenizer, {4, 4, 0}) == Strings{"", " ", " a", ""});
    CHECK(streamed(tokenizer, {1, 2, 3}) == Strings{"", "", "", "\u20ac"});
  }

  TEST_CASE("decode stream: the last word-end suffix is known at the end") {
    const Tokenizer tokenizer = with_tokens({"a", "b</w>"}, R"({"type": "BPEDecoder"})");
    CHECK(streamed(tokenizer, {0, 1, 0, 1}) == Strings{"", "a", "b ", "a", "b"});
  }

  TEST_CASE("decode stream: what a strip may still take is held back") {
    const Tokenizer tokenizer = with_tokens({"a", " ", "  b  "}, R"(
        {"type": "Sequence", "decoders": [
          {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 3, "stop": 2}]})");
    CHECK(streamed(tokenizer, {1, 2, 1, 0, 1, 1, 1}) ==
          Strings{"", "b", " ", "  a", "", "", " ", ""});
    CHECK(streamed(tokenizer, {1, 1, 1, 1}) == Strings{"", "", "", "", ""});
    CHECK(streamed(tokenizer, {}) == Strings{""});
  }

  TEST_CASE("decode stream: without a decoder, spaces go between tokens") {
    const Tokenizer tokenizer = with_tokens({"a", "b"}, "null");
    CHECK(streamed(tokenizer, {0, 1, 7, 0}) == Strings{"a", " b", "", " a", ""});
  }

  TEST_CASE("decode stream: special tokens and ids without a token are passed over") {
    TokenizerParts parts;
    parts.vocab = R"({"a": 0, "</s>": 1})";
    parts.added_tokens = R"([{"id": 1, "content": "</s>", "special": true}])";
    parts.decoder = R"({"type": "WordPiece"})";
    const Tokenizer tokenizer = make_tokenizer(parts);
    CHECK(streamed(tokenizer, {1, 0, 1, 9}) == Strings{"", "a", "", "", ""});
    CHECK(streamed(tokenizer, {1, 0}, SpecialTokens::kInclude) == Strings{"</s>", " a", ""});
  }

  TEST_CASE("decode stream: it outlives its tokenizer") {
    std::optional<Tokenizer> tokenizer = with_tokens({"a", "b"}, "null");
    DecodeStream stream = tokenizer->decode_stream();
    const auto first = stream.push(0);
    REQUIRE(first.ok());
    tokenizer.reset();
    const auto second = stream.push(1);
    REQUIRE(second.ok());
    const auto rest = stream.finish();
    REQUIRE(rest.ok());
    CHECK(*first + *second + *rest == "a b");
    CHECK(stream.push(0).ok());
  }

  TEST_CASE("decode stream: a negative id is an error that changes nothing; finish starts anew") {
    const Tokenizer tokenizer = with_tokens({"a", "b"}, R"({"type": "WordPiece"})");
    DecodeStream stream = tokenizer.decode_stream();
    CHECK(stream.push(0).value() == "a");
    const auto failed = stream.push(-5);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().message.find("-5") != std::string::npos);
    CHECK(stream.push(1).value() == " b");
    CHECK(stream.finish().value().empty());
    CHECK(stream.push(1).value() == "b");
    DecodeStream moved = std::move(stream);
    CHECK(moved.push(1).value() == " b");
  }

  TEST_CASE("decode stream: every decoder gives what decode gives") {
    const std::string replace =
        R"({"type": "Replace", "pattern": {"Regex": "[a-e ]+"}, "content": "\u00e9"})";
    const std::string strip = R"({"type": "Strip", "content": " ", "start": 2, "stop": 1})";
    const std::string fuse = R"({"type": "Fuse"})";
    const std::string sequence = R"({"type": "Sequence", "decoders": [)";
    const Strings decoders = {
        "null",
        fuse,
        replace,
        strip,
        R"({"type": "WordPiece"})",
        R"({"type": "WordPiece", "prefix": "", "cleanup": false})",
        R"({"type": "ByteLevel"})",
        R"({"type": "ByteFallback"})",
        R"({"type": "BPEDecoder"})",
        R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})",
        sequence + "]}",
        sequence + fuse + "," + replace + "," + strip + "]}",
        sequence + R"({"type": "ByteFallback"},)" + fuse + "," + strip + "]}",
        sequence + R"({"type": "ByteLevel"}, {"type": "WordPiece"},)" + strip + "]}",
        sequence + R"({"type": "BPEDecoder"}, {"type": "Metaspace", "replacement": "\u2581",)" +
            R"( "prepend_scheme": "never"},)" + fuse + "]}",
    };
    std::mt19937 random(11);
    for (const std::string& decoder : decoders) {
      CAPTURE(decoder);
      const Tokenizer tokenizer = with_tokens(kOddTokens, decoder);
      check_equal(tokenizer, {});
      for (int round = 0; round < 60; ++round) {
        Ids ids(random() % 12);
        for (TokenId& id : ids) id = static_cast<TokenId>(random() % (kOddTokens.size() + 1));
        check_equal(tokenizer, ids);
      }
    }
  }
}
