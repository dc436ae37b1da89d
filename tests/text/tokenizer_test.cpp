// Added tokens, post-processing, decoding, truncation and padding.
#include <thread>

#include "text/tokenizer_files.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

const char* const kWords =
    R"({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "c": 5, "hi": 6})";

std::string added(int id, const std::string& content, const std::string& flags) {
  return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + content + "\"" +
         (flags.empty() ? "" : ", " + flags) + "}";
}

TokenizerParts bert_like() {
  TokenizerParts parts;
  parts.vocab = kWords;
  parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
  parts.added_tokens = "[" + added(1, "[CLS]", R"("special": true)") + "," +
                       added(2, "[SEP]", R"("special": true)") + "]";
  parts.post_processor = R"({"type": "Sequence", "processors": [{"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A",
      "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "B",
      "type_id": 2}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 2}}, {"Sequence": {"id": "A",
      "type_id": 1}},
             {"SpecialToken": {"id": "end", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
      "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]},
      "end": {"id": "end", "ids": [2, 1], "tokens": ["[SEP]", "[CLS]"]}}}]})";
  return parts;
}

EncodeOptions cut_to(int32_t length,
                     TruncationStrategy strategy = TruncationStrategy::kLongestFirst) {
  EncodeOptions options;
  options.truncation.mode = TruncationMode::kToLength;
  options.truncation.max_length = length;
  options.truncation.strategy = strategy;
  return options;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("added tokens: flags") {
    TokenizerParts parts;
    parts.vocab = kWords;
    parts.normalizer = R"({"type": "Lowercase"})";
    parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
    parts.added_tokens = "[" + added(10, "<L>", R"("lstrip": true, "normalized": false)") + "," +
                         added(11, "<R>", R"("rstrip": true, "normalized": false)") + "," +
                         added(12, "<W>", R"("single_word": true, "normalized": false)") + "," +
                         added(13, "My", R"("normalized": true)") + "," +
                         added(14, "<W>>", R"("normalized": false)") + "]";
    const Tokenizer tokenizer = make_tokenizer(parts);
    CHECK(tokenizer.vocab_size() == 12);
    CHECK(tokenizer.token_to_id("My") == 13);

    Encoding out = encoded(tokenizer, "a \t<L> b");
    CHECK(out.ids == Ids{3, 10, 4});
    CHECK(out.tokens == Strings{"a", " \t<L>", "b"});
    CHECK(ranges_of(out) == Ranges{{0, 1}, {1, 6}, {7, 8}});
    out = encoded(tokenizer, "a<R>\u3000 b");
    CHECK(out.ids == Ids{3, 11, 4});
    CHECK(ranges_of(out) == Ranges{{0, 1}, {1, 6}, {6, 7}});
    CHECK(encoded(tokenizer, "<R> <L>").ids == Ids{11, 10});
    CHECK(encoded(tokenizer, "a <W> b").ids == Ids{3, 12, 4});
    CHECK(encoded(tokenizer, "a<W> b").ids == Ids{0, 4});
    CHECK(encoded(tokenizer, "<W>\u0301").ids == Ids{0});
    CHECK(encoded(tokenizer, "<W><W>").ids == Ids{12, 12});
    CHECK(encoded(tokenizer, "<W>>").ids == Ids{14});  // the longest wins
    CHECK(encoded(tokenizer, "<w>").ids == Ids{0});    // looked for as written
    // A normalized one is found in the normalized text.
    CHECK(encoded(tokenizer, "a MY b").ids == Ids{3, 13, 4});
    CHECK(encoded(tokenizer, "amyb").tokens == Strings{"a", "my", "b"});
  }

  TEST_CASE("offsets: code points of the original through several steps") {
    TokenizerParts parts;
    parts.vocab = kWords;
    parts.normalizer =
        R"({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"},
      {"type": "Lowercase"}, {"type": "Strip"}]})";
    parts.pre_tokenizer = R"({"type": "Whitespace"})";
    const Encoding out = encoded(make_tokenizer(parts), "  \U0001F600 H\u00ec \uff21  ");
    CHECK(out.tokens == Strings{"[UNK]", "hi", "a"});
    CHECK(ranges_of(out) == Ranges{{2, 3}, {4, 6}, {7, 8}});
  }

  TEST_CASE("post-processor: templates") {
    const Tokenizer tokenizer = make_tokenizer(bert_like());
    CHECK(encoded(tokenizer, "a b").tokens == Strings{"[CLS]", "a", "b", "[SEP]"});
    CHECK(encoded(tokenizer, "").ids == Ids{1, 2});
    EncodeOptions bare;
    bare.special_tokens = SpecialTokens::kExclude;
    CHECK(encoded(tokenizer, "a b", bare).ids == Ids{3, 4});
    const auto pair = tokenizer.encode_pair("a b", "c");
    REQUIRE(pair.ok());
    CHECK(pair->ids == Ids{1, 5, 2, 3, 4, 2, 1});
    CHECK(pair->type_ids == Ids{0, 2, 2, 1, 1, 1, 1});
    CHECK(ranges_of(*pair) == Ranges{{0, 0}, {0, 1}, {0, 0}, {0, 1}, {2, 3}, {0, 0}, {0, 0}});
    CHECK(tokenizer.encode_pair("a b", "c", bare)->type_ids == Ids{2, 1, 1});
  }

  TEST_CASE("post-processor: none joins a pair with types 0 and 1") {
    TokenizerParts parts;
    parts.vocab = kWords;
    const auto pair = make_tokenizer(parts).encode_pair("a", "b");
    REQUIRE(pair.ok());
    CHECK(pair->ids == Ids{3, 4});
    CHECK(pair->type_ids == Ids{0, 1});
  }

  TEST_CASE("truncation: strategies and sides") {
    const Tokenizer tokenizer = make_tokenizer(bert_like());
    CHECK(encoded(tokenizer, "a b c", cut_to(4)).ids == Ids{1, 3, 4, 2});
    CHECK(encoded(tokenizer, "a b c", cut_to(9)).ids.size() == 5);
    EncodeOptions left = cut_to(3);
    left.truncation.side = TextSide::kLeft;
    CHECK(encoded(tokenizer, "a b c", left).ids == Ids{1, 5, 2});
    CHECK(encoded(tokenizer, "a b c", cut_to(2)).ids == Ids{1, 2});
    CHECK_FALSE(tokenizer.encode("a b c", cut_to(1)).ok());
    CHECK_FALSE(tokenizer.encode("a b c", cut_to(-1)).ok());

    // 4 special tokens leave 3 places.
    CHECK(tokenizer.encode_pair("a b c", "a", cut_to(7))->ids == Ids{1, 3, 2, 3, 4, 2, 1});
    CHECK(tokenizer.encode_pair("a b c", "a b c", cut_to(7))->ids == Ids{1, 3, 4, 2, 3, 2, 1});
    CHECK(tokenizer.encode_pair("a b", "a b c", cut_to(7, TruncationStrategy::kOnlySecond))->ids ==
          Ids{1, 3, 2, 3, 4, 2, 1});
    CHECK_FALSE(
        tokenizer.encode_pair("a b", "a b c", cut_to(7, TruncationStrategy::kOnlyFirst)).ok());
    CHECK_FALSE(tokenizer.encode("a b c", cut_to(4, TruncationStrategy::kOnlySecond)).ok());
  }

  TEST_CASE("padding and truncation: settings of the file apply when asked for") {
    TokenizerParts parts = bert_like();
    parts.truncation =
        R"({"direction": "Left", "max_length": 4, "strategy": "LongestFirst", "stride": 0})";
    parts.padding = R"({"strategy": {"Fixed": 5}, "direction": "Left", "pad_to_multiple_of": 4,
      "pad_id": 0, "pad_type_id": 3, "pad_token": "[UNK]"})";
    const Tokenizer tokenizer = make_tokenizer(parts);
    CHECK(encoded(tokenizer, "a b c").ids == Ids{1, 3, 4, 5, 2});
    EncodeOptions options;
    options.truncation.mode = TruncationMode::kFromFile;
    options.padding.mode = PaddingMode::kFromFile;
    const Encoding out = encoded(tokenizer, "a b c", options);
    CHECK(out.ids == Ids{0, 0, 0, 0, 1, 4, 5, 2});
    CHECK(out.attention_mask == Ids{0, 0, 0, 0, 1, 1, 1, 1});
    CHECK(out.type_ids == Ids{3, 3, 3, 3, 0, 0, 0, 0});
    CHECK(out.offsets.size() == 8);

    parts.padding = R"({"strategy": "BatchLongest", "pad_id": 6})";
    const Strings texts = {"a", "a b"};
    const auto rows = make_tokenizer(parts).encode_batch(texts, options);
    REQUIRE(rows.ok());
    CHECK((*rows)[0].ids == Ids{1, 3, 2, 6});
    CHECK((*rows)[0].tokens.back() == "hi");

    options.padding.mode = PaddingMode::kToLength;
    options.padding.length = INT32_MAX;
    CHECK_FALSE(tokenizer.encode("a", options).ok());
  }

  TEST_CASE("decoder: null, replace, fuse, strip") {
    TokenizerParts parts;
    parts.vocab = R"({"[UNK]": 0, "\u2581a": 1, "\u2581b": 2, "  c  ": 3})";
    const Ids ids = {1, 2, 0};
    CHECK(make_tokenizer(parts).decode(ids).value() == "\u2581a \u2581b [UNK]");
    const std::string replace =
        R"({"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "})";
    const std::string strip = R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})";
    parts.decoder = replace;
    CHECK(make_tokenizer(parts).decode(ids).value() == " a b[UNK]");
    parts.decoder = R"({"type": "Sequence", "decoders": [)" + replace + R"(, {"type": "Fuse"}, )" +
                    strip + "]}";
    CHECK(make_tokenizer(parts).decode(ids).value() == "a b[UNK]");
    parts.decoder = R"({"type": "Strip", "content": " ", "start": 1, "stop": 9})";
    CHECK(make_tokenizer(parts).decode(Ids{3}).value() == " c");
    parts.decoder = R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": ""})";
    CHECK(make_tokenizer(parts).decode(Ids{3, 3}).value() == "cc");
  }

  TEST_CASE("decode skips special tokens that the model's vocabulary lacks too") {
    TokenizerParts parts = bert_like();
    parts.added_tokens = "[" + added(1, "[CLS]", R"("special": true)") + "," +
                         added(99, "<end>", R"("special": true)") + "," + added(98, "<x>", "") +
                         "]";
    const Tokenizer tokenizer = make_tokenizer(parts);
    CHECK(tokenizer.decode(Ids{1, 3, 98, 99}).value() == "a <x>");
    CHECK(tokenizer.decode(Ids{1, 3, 99}, SpecialTokens::kInclude).value() == "[CLS] a <end>");
    CHECK(tokenizer.id_to_token(99) == "<end>");
  }

  TEST_CASE("tokenizer: one may be used from several threads") {
    const Tokenizer tokenizer = make_tokenizer(bert_like());
    std::vector<int> good(4, 0);
    std::vector<std::thread> threads;
    for (int& mine : good) {
      threads.emplace_back([&tokenizer, &mine] {
        for (int i = 0; i < 200; ++i) {
          const auto out = tokenizer.encode("a b hi \u00e9");
          mine += out.ok() && out->ids == Ids{1, 3, 4, 6, 0, 2} ? 1 : 0;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(good == std::vector<int>(4, 200));
  }
}
