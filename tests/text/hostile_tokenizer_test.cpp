// Damaged, hostile and unsupported tokenizer files and texts: always an error, never a crash.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

void check_error(const TokenizerParts& parts, ErrorCode code, const std::string& says) {
  const auto made = Tokenizer::parse(tokenizer_json(parts));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().code == code);
  CHECK_MESSAGE(made.error().message.find(says) != std::string::npos, made.error().message);
}

// A file that uses every part.
std::string full_file() {
  TokenizerParts parts;
  parts.vocab = R"({"[UNK]": 0, "a": 1, "b": 2})";
  parts.added_tokens = R"([{"id": 5, "content": "<x>", "single_word": false, "lstrip": true,
    "rstrip": false, "normalized": false, "special": true}])";
  parts.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip"},
    {"type": "Replace", "pattern": {"String": "q"}, "content": "a"}, {"type": "Prepend",
      "prepend": " "}]})";
  parts.pre_tokenizer =
      R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Punctuation"},
    {"type": "Split", "pattern": {"Regex": "\\s"}, "behavior": "Removed", "invert": false}]})";
  parts.post_processor =
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
    {"SpecialToken": {"id": "<x>", "type_id": 0}}], "pair": [{"Sequence": {"id": "B",
      "type_id": 1}}],
    "special_tokens": {"<x>": {"id": "<x>", "ids": [5], "tokens": ["<x>"]}}})";
  parts.decoder = R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 1},
    {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}]})";
  parts.truncation =
      R"({"direction": "Right", "max_length": 4, "strategy": "OnlyFirst", "stride": 0})";
  parts.padding =
      R"({"strategy": {"Fixed": 5}, "direction": "Left", "pad_id": 0, "pad_type_id": 0})";
  return tokenizer_json(parts);
}

// Uses a tokenizer in every way; what it says does not matter here.
void exercise(const Tokenizer& tokenizer) {
  EncodeOptions options;
  options.padding.mode = PaddingMode::kFromFile;
  options.truncation.mode = TruncationMode::kFromFile;
  (void)tokenizer.encode(" a1, <x> qb", options);
  (void)tokenizer.encode_pair("a", "b b", options);
  (void)tokenizer.decode(std::vector<TokenId>{0, 1, 2, 5, 7}, SpecialTokens::kInclude);
}

// Every JSON value below `node`.
void collect(nlohmann::json& node, std::vector<nlohmann::json*>& out) {
  out.push_back(&node);
  if (!node.is_structured()) return;
  for (auto& child : node) collect(child, out);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("hostile tokenizer: every truncation of a file is an error") {
    const std::string whole = full_file();
    const auto good = Tokenizer::parse(whole);
    REQUIRE_MESSAGE(good.ok(), (good.ok() ? std::string() : good.error().message));
    exercise(*good);
    for (size_t length = 0; length < whole.size(); ++length) {
      const auto made = Tokenizer::parse(std::string_view(whole).substr(0, length));
      REQUIRE_FALSE(made.ok());
      REQUIRE(made.error().code == ErrorCode::kInvalidFile);
    }
  }

  TEST_CASE("hostile tokenizer: every value replaced by one of another type") {
    const char* const values[] = {
        "null",   "true", "-1",   "1e300", "99999999999999999999", "2147483648", "\"\"",
        "\"zz\"", "[]",   "[[]]", "{}",    "{\"a\": {}}"};
    const auto original = nlohmann::json::parse(full_file());
    auto counted = original;
    std::vector<nlohmann::json*> places;
    collect(counted, places);
    int refused = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      for (const char* value : values) {
        auto document = original;
        std::vector<nlohmann::json*> nodes;
        collect(document, nodes);
        *nodes[i] = nlohmann::json::parse(value);
        const auto made = Tokenizer::parse(document.dump());
        if (made.ok()) {
          exercise(*made);
        } else {
          ++refused;
          REQUIRE(made.error().message.find("[tokenizer.json") != std::string::npos);
        }
      }
    }
    CHECK(refused > 300);
  }

  TEST_CASE("hostile tokenizer: deep nesting") {
    for (const size_t depth : {100u, 1'000'000u}) {
      for (const char* open : {"[", "{\"a\":"}) {
        std::string text;
        for (size_t i = 0; i < depth; ++i) text += open;
        const auto made = Tokenizer::parse(text);
        REQUIRE_FALSE(made.ok());
        CHECK(made.error().code == ErrorCode::kInvalidFile);
        CHECK(made.error().message.find("64 levels") != std::string::npos);
      }
    }
    TokenizerParts parts;
    parts.normalizer = R"({"type": "NFC"})";
    for (int i = 0; i < 20; ++i) {
      parts.normalizer = R"({"type": "Sequence", "normalizers": [)" + parts.normalizer + "]}";
    }
    check_error(parts, ErrorCode::kInvalidFile, "16 sequences");
  }

  TEST_CASE("hostile tokenizer: brackets in strings do not nest") {
    TokenizerParts parts;
    parts.vocab = R"({"[UNK]": 0, "\"": 1, ")" + std::string(200, '[') + R"(": 2, "\\": 3})";
    CHECK(make_tokenizer(parts).token_to_id(std::string(200, '[')) == 2);
  }

  TEST_CASE("tokenizer: loading takes time in proportion to the added tokens") {
    const auto seconds = [](int count) {
      TokenizerParts parts;
      std::string& added = parts.added_tokens = "[";
      for (int i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        added += std::string(i > 0 ? "," : "") + R"({"content": "<sound )" + number +
                 R"(>", "id": )" + std::to_string(i + 1) + R"(, "special": )" +
                 (i % 2 == 0 ? "true" : "false") + "}";
      }
      added += "]";
      const std::string file = tokenizer_json(parts);
      const auto begin = std::chrono::steady_clock::now();
      const auto tokenizer = Tokenizer::parse(file);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      REQUIRE(tokenizer.ok());
      CHECK(tokenizer->encode("<sound 7><sound 77>", {})->ids == std::vector<TokenId>{8, 78});
      return taken.count();
    };
    // Sixteen times the tokens took 250 times as long where each looked at all others.
    const double few = std::min(seconds(4'000), seconds(4'000));
    CHECK(seconds(64'000) < 60 * few + 0.5);
  }

  TEST_CASE("hostile tokenizer: ids") {
    TokenizerParts parts;
    parts.vocab = R"({"[UNK]": 0, "a": 2147483648})";
    check_error(parts, ErrorCode::kInvalidFile, "model.vocab[a]] is 2147483648; it must be");
    parts.vocab = R"({"[UNK]": 0, "a": 18446744073709551615})";
    check_error(parts, ErrorCode::kInvalidFile, "18446744073709551615");
    parts.vocab = R"({"[UNK]": 0, "a": -1})";
    check_error(parts, ErrorCode::kInvalidFile, "is -1");
    parts.vocab = R"({"[UNK]": 0, "a": 1.5})";
    check_error(parts, ErrorCode::kInvalidFile, "of JSON type number");
    parts.vocab = R"({"[UNK]": 0, "a": 7, "b": 7})";
    check_error(parts, ErrorCode::kInvalidFile, "ids must be unique");
    // A huge id that fits costs no memory.
    parts.vocab = R"({"[UNK]": 0, "a": 2147483647})";
    CHECK(encoded(make_tokenizer(parts), "a").ids == std::vector<TokenId>{2147483647});

    parts.vocab = R"({"[UNK]": 0, "a": 1})";
    parts.added_tokens = R"([{"id": 1, "content": "<x>"}])";
    check_error(parts, ErrorCode::kInvalidFile, "which token [a] has already");
    parts.added_tokens = R"([{"id": 9, "content": "a"}])";
    check_error(parts, ErrorCode::kInvalidFile, "it has the id 1 already");
    parts.added_tokens = R"([{"id": 5, "content": "<x>"}, {"id": 5, "content": "<y>"}])";
    check_error(parts, ErrorCode::kInvalidFile, "which token [<x>] has already");
    parts.added_tokens = R"([{"id": 4294967296, "content": "<x>"}])";
    check_error(parts, ErrorCode::kInvalidFile, "added_tokens[0].id] is 4294967296");
    parts.added_tokens = R"([{"id": 5, "content": "<x>"}, {"id": 5, "content": "<x>"}])";
    CHECK(make_tokenizer(parts).vocab_size() == 3);
  }

  TEST_CASE("tokenizer: types this build does not know are named") {
    TokenizerParts parts;
    parts.normalizer = R"({"type": "Mystery"})";
    check_error(parts, ErrorCode::kUnsupported, "normalizer type [Mystery]");
    parts = {};
    parts.pre_tokenizer =
        R"({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "Mystery"}]})";
    check_error(parts, ErrorCode::kUnsupported,
                "pre_tokenizer.pretokenizers[1]] The pre-tokenizer type [Mystery]");
    parts = {};
    parts.post_processor = R"({"type": "Mystery"})";
    check_error(parts, ErrorCode::kUnsupported, "post-processor type [Mystery]");
    parts = {};
    parts.decoder = R"({"type": "Mystery"})";
    check_error(parts, ErrorCode::kUnsupported, "decoder type [Mystery]");
    const auto model = Tokenizer::parse(R"({"model": {"type": "Mystery"}})");
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kUnsupported);
    CHECK(model.error().message.find("model type [Mystery]") != std::string::npos);
    CHECK_FALSE(Tokenizer::parse(R"({"version": "2.0", "model": {}})").ok());
  }

  TEST_CASE("tokenizer: invalid UTF-8 is an error at its byte offset") {
    TokenizerParts parts;
    parts.vocab = R"({"[UNK]": 0, "a": 1})";
    const Tokenizer tokenizer = make_tokenizer(parts);
    const std::pair<std::string, int> cases[] = {{"\x80", 0},
                                                 {"ab\xff", 2},
                                                 {"\xc3", 0},
                                                 {"\u00e9\xc3(", 2},
                                                 {"a\xc0\xaf", 1},
                                                 {"\xe0\x80\x80", 0},
                                                 {"\xed\xa0\x80", 0},
                                                 {"\xf0\x80\x80\x80", 0},
                                                 {"\xf4\x90\x80\x80", 0},
                                                 {"abc\xf0\x9f\x98", 3},
                                                 {"\xf8\x88\x80\x80\x80", 0}};
    for (const auto& [text, offset] : cases) {
      const auto out = tokenizer.encode(text);
      REQUIRE_FALSE(out.ok());
      CHECK(out.error().code == ErrorCode::kInvalidArgument);
      const std::string says = "byte offset " + std::to_string(offset) + " of";
      CHECK_MESSAGE(out.error().message.find(says) != std::string::npos, out.error().message);
    }
    const std::vector<std::string> texts = {"a", "a\xff"};
    CHECK(tokenizer.encode_batch(texts).error().message.find("Text 1 of the batch") == 0);
    CHECK(encoded(tokenizer, std::string_view("\0", 1)).ids == std::vector<TokenId>{0});
    CHECK(encoded(tokenizer, "\xf4\x8f\xbf\xbf").ids == std::vector<TokenId>{0});
    CHECK_FALSE(Tokenizer::parse("{\"model\": \"\xff\"}").ok());
  }

  TEST_CASE("tokenizer: a word without an unknown token is an error that names it") {
    TokenizerParts parts;
    parts.vocab = R"({"a": 1})";
    const auto out = make_tokenizer(parts).encode("zebra");
    REQUIRE_FALSE(out.ok());
    CHECK(out.error().message.find("[zebra]") != std::string::npos);
  }

  TEST_CASE("tokenizer: a long text of one class is linear work") {
    TokenizerParts parts;
    parts.vocab = R"({"[UNK]": 0, "a": 1})";
    parts.added_tokens =
        R"([{"id": 5, "content": "<x>", "lstrip": true, "rstrip": true, "normalized": false}])";
    parts.normalizer = R"({"type": "NFKC"})";
    parts.pre_tokenizer = R"({"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated"})";
    const Tokenizer tokenizer = make_tokenizer(parts);
    CHECK(encoded(tokenizer, std::string(200'000, 'a')).ids.size() == 200'000);
    std::string marks;
    for (int i = 0; i < 50'000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";
    CHECK(encoded(tokenizer, marks).ids.size() == 50'000);
  }
}
