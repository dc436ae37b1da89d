// BERT's normalizer, pre-tokenizer and post-processors, RoBERTa's, and the WordPiece decoder.
#include "text/bert_text.h"
#include "text/tokenizer_files.h"
#include "unicode/utf8.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

using Ids = std::vector<TokenId>;
using Strings = std::vector<std::string>;

struct BertNormalized {
  std::string text;
  Ranges ranges;
};

BertNormalized normalized(const std::string& settings, const std::string& text) {
  const auto document = nlohmann::json::parse(R"({"type": "BertNormalizer")" + settings + "}");
  const auto step = parse_normalizer(JsonRef(document, "normalizer"));
  REQUIRE_MESSAGE(step.ok(), (step.ok() ? std::string() : step.error().message));
  AlignedText aligned(decode_utf8(text, "text").value());
  REQUIRE((*step)->apply(aligned).ok());
  BertNormalized out{encode_utf8(aligned.chars()), {}};
  for (size_t i = 0; i < aligned.size(); ++i) {
    out.ranges.emplace_back(aligned.span(i).begin, aligned.span(i).end);
  }
  return out;
}

// All steps off but for those in `settings`.
std::string only(const std::string& settings) {
  std::string all;
  for (const char* step : {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}) {
    const bool on = settings.find(step) != std::string::npos;
    all += std::string(R"(, ")") + step + (on ? R"(": true)" : R"(": false)");
  }
  return all;
}

Strings words_of(const std::string& text) {
  const auto document = nlohmann::json::parse(R"({"type": "BertPreTokenizer"})");
  const auto step = parse_pre_tokenizer(JsonRef(document, "pre_tokenizer"));
  REQUIRE(step.ok());
  WordList words(AlignedText(decode_utf8(text, "text").value()));
  REQUIRE((*step)->apply(words).ok());
  Strings out;
  for (const CharSpan& word : words.words()) {
    out.push_back(encode_utf8(words.chars().substr(word.begin, word.end - word.begin)));
  }
  return out;
}

std::string decoded_words(const std::string& settings, Strings tokens) {
  const auto document = nlohmann::json::parse(R"({"type": "WordPiece")" + settings + "}");
  const auto step = parse_decoder(JsonRef(document, "decoder"));
  REQUIRE_MESSAGE(step.ok(), (step.ok() ? std::string() : step.error().message));
  const auto pieces = (*step)->decode(std::move(tokens));
  REQUIRE(pieces.ok());
  std::string text;
  for (const std::string& piece : *pieces) text += piece;
  return text;
}

TokenizerParts parts_with(const std::string& post_processor) {
  TokenizerParts parts;
  parts.vocab = R"({"[UNK]": 0, "a": 1, "b": 2, "<s>": 3, "</s>": 4})";
  parts.pre_tokenizer = R"({"type": "WhitespaceSplit"})";
  parts.post_processor = post_processor;
  return parts;
}

Encoding encoded_pair(const Tokenizer& tokenizer, const EncodeOptions& options = {}) {
  auto result = tokenizer.encode_pair("a b", "b", options);
  REQUIRE(result.ok());
  return std::move(result).value();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("bert normalizer: cleaning") {
    const std::string on = only("clean_text");
    // NUL, controls, formats, private use and U+FFFD go; every kind of space is one.
    const auto out = normalized(on, std::string("a\0b\x01\x7f"
                                                "c\u00ad\u200b\ufeff\ue000\ufffd",
                                                20) +
                                        "d\t\n\r\u00a0\u3000\u2028" + "e");
    CHECK(out.text == "abcd      e");
    CHECK(out.ranges.front() == std::pair<int32_t, int32_t>(0, 1));
    CHECK(out.ranges[1] == std::pair<int32_t, int32_t>(2, 3));
    CHECK(out.ranges.back() == std::pair<int32_t, int32_t>(18, 19));
    // Vertical tab, form feed and next line are controls; unassigned characters stay.
    CHECK(normalized(on,
                     "a\v\f\u0085"
                     "b\u0378")
              .text == "ab\u0378");
    // A format character of Unicode 14 is none in the tables this step is defined by.
    CHECK(normalized(on, "a\u0890").text == "a\u0890");
  }

  TEST_CASE("bert normalizer: ideographs") {
    const auto out = normalized(only("handle_chinese_chars"), "a\u4e2d\u3042\U00020000");
    CHECK(out.text == "a \u4e2d \u3042 \U00020000 ");
    CHECK(out.ranges == Ranges{{0, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 3}, {3, 4}, {3, 4}, {3, 4}});
    for (const char* end : {"\u3400", "\u4dbf", "\u9fff", "\uf900", "\ufaff", "\U0002a6df",
                            "\U0002b81f", "\U0002b920", "\U0002ceaf", "\U0002fa1f"}) {
      CHECK(normalized(only("handle_chinese_chars"), end).text == " " + std::string(end) + " ");
    }
    for (const char* near : {"\u33ff", "\u4dc0", "\u4dff", "\ua000", "\ufb00", "\U0002a6e0",
                             "\U0002b820", "\U0002ceb0", "\U0002fa20", "\uac00"}) {
      CHECK(normalized(only("handle_chinese_chars"), near).text == near);
    }
  }

  TEST_CASE("bert normalizer: accents and case") {
    CHECK(normalized(only("strip_accents"), "\u00c9te\u0301 \uac00").text == "Ete \u1100\u1161");
    CHECK(normalized(only("strip_accents"), "\u00c9te\u0301x").ranges ==
          Ranges{{0, 1}, {1, 2}, {2, 3}, {4, 5}});
    CHECK(normalized(only("lowercase"), "\u00c9A\u0301Z \u0130\u1e9e").text ==
          "\u00e9a\u0301z i\u0307\u00df");
    CHECK(normalized(only("lowercase"), "A\u0130B").ranges ==
          Ranges{{0, 1}, {1, 2}, {1, 2}, {2, 3}});
    CHECK(normalized(only("lowercase"), "AZ@[`{").text == "az@[`{");
    // A mark that came with Unicode 14 is not stripped, one that left the category is.
    CHECK(normalized(only("strip_accents"), "a\u08ca").text == "a\u08ca");
    CHECK(normalized(only("strip_accents"), "a\u1734").text == "a");
  }

  TEST_CASE("bert normalizer: strip_accents follows lowercase when it is null or absent") {
    const std::string text = "\u00c9";
    CHECK(normalized("", text).text == "e");
    CHECK(normalized(R"(, "strip_accents": null)", text).text == "e");
    CHECK(normalized(R"(, "strip_accents": null, "lowercase": false)", text).text == text);
    CHECK(normalized(R"(, "strip_accents": true, "lowercase": false)", text).text == "E");
    CHECK(normalized(R"(, "strip_accents": false)", text).text == "\u00e9");
  }

  TEST_CASE("bert pre-tokenizer: words and single punctuation signs") {
    CHECK(words_of("Don't  stop!!\n\u00bfQu\u00e9? a_b") ==
          Strings{"Don", "'", "t", "stop", "!", "!", "\u00bf", "Qu\u00e9", "?", "a", "_", "b"});
    // ASCII symbols count, others do not.
    CHECK(words_of("a$b\u20acc") == Strings{"a", "$", "b\u20acc"});
    CHECK(words_of("\u3000\u4e2d\u3002x") == Strings{"\u4e2d", "\u3002", "x"});
    CHECK(words_of("   ").empty());
    CHECK(words_of("").empty());
    // Punctuation since Unicode 14, and what was punctuation until Unicode 12.
    CHECK(words_of("a\u061d"
                   "b") == Strings{"a\u061d"
                                   "b"});
    CHECK(words_of("a\u166d"
                   "b") == Strings{"a", "\u166d", "b"});
  }

  TEST_CASE("bert processing: one text and two") {
    const Tokenizer tokenizer = make_tokenizer(
        parts_with(R"({"type": "BertProcessing", "sep": ["</s>", 4], "cls": ["<s>", 3]})"));
    const Encoding one = encoded(tokenizer, "a b");
    CHECK(one.ids == Ids{3, 1, 2, 4});
    CHECK(one.tokens == Strings{"<s>", "a", "b", "</s>"});
    CHECK(ranges_of(one) == Ranges{{0, 0}, {0, 1}, {2, 3}, {0, 0}});
    CHECK(one.type_ids == Ids{0, 0, 0, 0});
    const Encoding two = encoded_pair(tokenizer);
    CHECK(two.ids == Ids{3, 1, 2, 4, 2, 4});
    CHECK(two.type_ids == Ids{0, 0, 0, 0, 1, 1});
    EncodeOptions options;
    options.special_tokens = SpecialTokens::kExclude;
    CHECK(encoded_pair(tokenizer, options).ids == Ids{1, 2, 2});
    options = {};
    options.truncation.mode = TruncationMode::kToLength;
    options.truncation.max_length = 5;
    CHECK(encoded_pair(tokenizer, options).ids == Ids{3, 1, 4, 2, 4});
  }

  TEST_CASE("roberta processing: one text and two") {
    const Tokenizer tokenizer = make_tokenizer(parts_with(
        R"({"type": "RobertaProcessing", "sep": ["</s>", 4], "cls": ["<s>", 3],
            "trim_offsets": true, "add_prefix_space": false})"));
    CHECK(encoded(tokenizer, "a b").ids == Ids{3, 1, 2, 4});
    const Encoding two = encoded_pair(tokenizer);
    CHECK(two.ids == Ids{3, 1, 2, 4, 4, 2, 4});
    CHECK(two.type_ids == Ids{0, 0, 0, 0, 0, 0, 0});
    EncodeOptions options;
    options.special_tokens = SpecialTokens::kExclude;
    const Encoding bare = encoded_pair(tokenizer, options);
    CHECK(bare.ids == Ids{1, 2, 2});
    CHECK(bare.type_ids == Ids{0, 0, 0});
    options = {};
    options.truncation.mode = TruncationMode::kToLength;
    options.truncation.max_length = 6;
    CHECK(encoded_pair(tokenizer, options).ids == Ids{3, 1, 4, 4, 2, 4});
  }

  TEST_CASE("roberta processing: spaces are trimmed off ranges, if asked") {
    for (const bool trims : {true, false}) {
      TokenizerParts parts = parts_with(
          std::string(R"({"type": "RobertaProcessing", "sep": ["</s>", 4], "cls": ["<s>", 3],
              "add_prefix_space": false, "trim_offsets": )") +
          (trims ? "true}" : "false}"));
      parts.vocab = R"({"[UNK]": 0, "a": 1, " b": 2, "<s>": 3, "</s>": 4})";
      parts.pre_tokenizer =
          R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext"})";
      const Tokenizer tokenizer = make_tokenizer(parts);
      const int32_t begin = trims ? 2 : 1;
      CHECK(ranges_of(encoded(tokenizer, "a b")) == Ranges{{0, 0}, {0, 1}, {begin, 3}, {0, 0}});
    }
  }

  TEST_CASE("bert and roberta processing: malformed special tokens are refused") {
    for (const char* type : {"BertProcessing", "RobertaProcessing"}) {
      for (const char* sep : {R"(["</s>"])", R"("</s>")", R"(["</s>", -1])", R"([4, "</s>"])"}) {
        const auto made = Tokenizer::parse(tokenizer_json(parts_with(
            std::string(R"({"type": ")") + type + R"(", "cls": ["<s>", 3], "sep": )" + sep + "}")));
        REQUIRE_FALSE(made.ok());
        CHECK(made.error().message.find("post_processor.sep") != std::string::npos);
      }
    }
  }

  TEST_CASE("word piece decoder: spaces, prefix and cleanup") {
    CHECK(decoded_words("", {"un", "##aff", "##able", "day"}) == "unaffable day");
    CHECK(decoded_words("", {"##a", "##b"}) == "##ab");
    CHECK(decoded_words("", {"do", "n't", ",", "it", "'s", "I", "'ve", "we", "'re", ".", "x", "?",
                             "!"}) == "don't, it's I've we're. x?!");
    CHECK(decoded_words("", {"I", "'m", " do not"}) == "I'm  don't");
    CHECK(decoded_words("", {"a", " ' ", "b"}) == "a ' b");
    // Within tokens only: what two of them make together stays.
    CHECK(decoded_words("", {"a ", "##."}) == "a .");
    CHECK(decoded_words(R"(, "cleanup": false)", {"a", ".", "##b"}) == "a .b");
    CHECK(decoded_words(R"(, "prefix": "@@")", {"a", "@@b", "##c"}) == "ab ##c");
    CHECK(decoded_words("", {}).empty());
  }
}
