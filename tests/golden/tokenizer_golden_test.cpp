// Every golden tokenizer through the public API: ids, tokens, offsets, decoded text, one batch, and
// the same text again from the stream of ids.
#include "support/golden.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

std::vector<GoldenCase> tokenizer_cases() {
  std::vector<GoldenCase> cases;
  for (GoldenCase& golden : golden_cases_with("model/tokenizer.json")) {
    if (golden.has("expected.json")) cases.push_back(std::move(golden));
  }
  return cases;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  DecodeStream stream = tokenizer.decode_stream(SpecialTokens::kExclude);
  std::string text;
  for (TokenId id : ids) {
    const auto part = stream.push(id);
    REQUIRE_MESSAGE(part.ok(), part.error().message);
    text += *part;
  }
  const auto rest = stream.finish();
  REQUIRE_MESSAGE(rest.ok(), rest.error().message);
  return text + *rest;
}

void check_encoding(const Tokenizer& tokenizer, const Result<Encoding>& encoding,
                    const Result<Encoding>& bare, const Json& expected) {
  REQUIRE_MESSAGE(encoding.ok(), encoding.error().message);
  REQUIRE_MESSAGE(bare.ok(), bare.error().message);
  CHECK(encoding->ids == expected.at("ids").get<std::vector<TokenId>>());
  CHECK(encoding->tokens == expected.at("tokens").get<std::vector<std::string>>());
  CHECK(encoding->type_ids == expected.at("type_ids").get<std::vector<int64_t>>());
  CHECK(bare->ids == expected.at("ids_without_special").get<std::vector<TokenId>>());
  std::vector<TextRange> offsets;
  for (const Json& range : expected.at("offsets")) {
    offsets.push_back({range[0].get<int32_t>(), range[1].get<int32_t>()});
  }
  CHECK(encoding->offsets == offsets);
  const std::string decoded = expected.at("decoded").get<std::string>();
  CHECK(tokenizer.decode(encoding->ids, SpecialTokens::kExclude).value() == decoded);
  CHECK(streamed(tokenizer, encoding->ids) == decoded);
  CHECK(tokenizer.decode(encoding->ids, SpecialTokens::kInclude).value() ==
        expected.at("decoded_with_special").get<std::string>());
}

void check_batch(const Tokenizer& tokenizer, const Json& batch, const Json& expected) {
  EncodeOptions options;
  options.truncation.mode = TruncationMode::kToLength;
  options.truncation.max_length = batch.at("truncation_max_length").get<TokenId>();
  options.padding.mode = PaddingMode::kToLongest;
  options.padding.pad_id = batch.at("pad_id").get<TokenId>();
  const auto texts = batch.at("strings").get<std::vector<std::string>>();
  const auto rows = tokenizer.encode_batch(texts, options);
  REQUIRE_MESSAGE(rows.ok(), rows.error().message);
  REQUIRE(rows->size() == expected.at("ids").size());
  for (size_t i = 0; i < rows->size(); ++i) {
    CHECK((*rows)[i].ids == expected.at("ids")[i].get<std::vector<TokenId>>());
    CHECK((*rows)[i].attention_mask ==
          expected.at("attention_mask")[i].get<std::vector<int64_t>>());
  }
}

// What a golden case expects, of its tokenizer in the file or folder `path`.
void check_tokenizer(const GoldenCase& golden, const std::string& path) {
  EncodeOptions bare;
  bare.special_tokens = SpecialTokens::kExclude;
  const auto tokenizer = Tokenizer::load(path);
  REQUIRE_MESSAGE(tokenizer.ok(), path << ": " << tokenizer.error().message);
  const Json inputs = read_json(golden.path("inputs.json"));
  const Json expected = read_json(golden.path("expected.json"));
  const Json& strings = inputs.at("strings");
  for (size_t i = 0; i < strings.size(); ++i) {
    const std::string text = strings[i].get<std::string>();
    INFO(path << ", string " << i << ": " << text);
    check_encoding(*tokenizer, tokenizer->encode(text), tokenizer->encode(text, bare),
                   expected.at("strings")[i]);
  }
  const Json& pairs = inputs.at("pairs");
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string first = pairs[i][0].get<std::string>();
    const std::string second = pairs[i][1].get<std::string>();
    INFO(path << ", pair " << i << ": " << first << " | " << second);
    check_encoding(*tokenizer, tokenizer->encode_pair(first, second),
                   tokenizer->encode_pair(first, second, bare), expected.at("pairs")[i]);
  }
  INFO(path << ", batch");
  check_batch(*tokenizer, inputs.at("batch"), expected.at("batch"));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("tokenizers give their golden ids, offsets and texts") {
    const std::vector<GoldenCase> cases = tokenizer_cases();
    CHECK(cases.size() >= 8);
    for (const GoldenCase& golden : cases) check_tokenizer(golden, golden.path("model"));
  }

  TEST_CASE("golden tokenizers in GGUF files give the same") {
    size_t count = 0;
    const std::string folder = golden_folder() + "/gguf-tokenizers";
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      check_tokenizer(golden_case(file.path().stem().string()), file.path().string());
      ++count;
    }
    CHECK(count == 6);
  }
}

}  // namespace vkformer::testing
