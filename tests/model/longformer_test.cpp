#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kLongformer = {
    {"model_type", "longformer"},    {"hidden_size", 24},       {"num_hidden_layers", 2},
    {"num_attention_heads", 3},      {"intermediate_size", 48}, {"vocab_size", 60},
    {"max_position_embeddings", 32}, {"type_vocab_size", 1},    {"attention_window", {4, 8}}};

// read_inputs of a batch of two rows of `tokens` ids, all of them allowed but the last of row 1.
Result<ForwardInputs> read(const ModelFamily& family, const TensorMap& more, int64_t tokens,
                           const std::vector<int64_t>& ids = {}) {
  TensorMap inputs = more;
  const std::vector<int64_t> plain(static_cast<size_t>(2 * tokens), 5);
  inputs["input_ids"] = Tensor::from_ints({2, tokens}, ids.empty() ? plain : ids);
  ForwardInputs result;
  result.shape = {.batch = 2, .source = tokens};
  const std::vector<int64_t> values = *inputs["input_ids"].to_ints();
  result.words["input_ids"].assign(values.begin(), values.end());
  result.words["key_mask"] = {(1u << tokens) - 1, (1u << (tokens - 1)) - 1};
  VKF_CHECK(family.read_inputs(inputs, result));
  return result;
}

std::unique_ptr<ModelFamily> family_of(const Json& config) {
  auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  return std::move(*family);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("longformer: facts are a RoBERTa's, with the library's defaults") {
    const ModelFacts facts = facts_of(kLongformer);
    CHECK(facts.family == "longformer");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.max_source == 30);
    const ModelFacts defaults = facts_of({{"model_type", "longformer"}});
    CHECK(defaults.width == 768);
    CHECK(defaults.source_vocab == 30522);
    CHECK(defaults.source_tokens.types == 2);
  }

  TEST_CASE("longformer: hostile sizes and windows are refused with their numbers") {
    check_sizes(kLongformer, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                              "intermediate_size", "vocab_size", "type_vocab_size"});
    const auto refused = [](Json window, const std::vector<std::string>& parts) {
      check_refused(with(kLongformer, "attention_window", std::move(window)),
                    ErrorCode::kInvalidFile, parts);
    };
    refused(0, {"[attention_window]", "is 0 in layer 0"});
    refused(-2, {"is -2"});
    refused(7, {"is 7", "even"});
    refused(Json::array({4, 0}), {"is 0 in layer 1"});
    refused(Json::array({4, 4, 4}), {"has 3 values", "2 layers"});
    refused(int64_t{1} << 40, {"1099511627776"});
    CHECK(load_config(with(kLongformer, "attention_window", 6)).ok());
    check_refused(with(kLongformer, "architectures", Json::array({"LongformerForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"LongformerForMultipleChoice"});
  }

  TEST_CASE("longformer: global tokens come from the mask, and their number is rounded") {
    const auto family = family_of(kLongformer);
    const auto none = read(*family, {}, 7);
    REQUIRE(none.ok());
    CHECK(none->shape.more == std::vector<int64_t>{0});
    const std::vector<int64_t> mask = {1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1};
    const auto some =
        read(*family, {{"global_attention_mask", Tensor::from_ints({2, 7}, mask)}}, 7);
    REQUIRE(some.ok());
    CHECK(some->shape.more == std::vector<int64_t>{4});  // 3 rounded up
    // Row 1 has one: its last token is padding.
    CHECK(some->words.at("global_rows") == std::vector<uint32_t>{0, 2, 6, ~0u, 12, ~0u, ~0u, ~0u});
    CHECK(some->words.at("global_places")[6] == 2);
    CHECK(some->words.at("global_places")[12] == 4);
    CHECK(some->words.at("global_places")[13] == ~0u);
    const auto wrong =
        read(*family, {{"global_attention_mask", Tensor::zeros(DType::kI64, {2, 6})}}, 7);
    REQUIRE_FALSE(wrong.ok());
    CHECK(test::contains(wrong.error().message, "[global_attention_mask] has shape (2, 6)"));
  }

  TEST_CASE("longformer: a classifier's first token and a question are global by themselves") {
    const Json classes =
        with(kLongformer, "architectures", Json::array({"LongformerForSequenceClassification"}));
    const auto first = read(*family_of(classes), {}, 7);
    REQUIRE(first.ok());
    CHECK(first->words.at("global_rows") == std::vector<uint32_t>{0, 7});
    const Json answers =
        with(kLongformer, "architectures", Json::array({"LongformerForQuestionAnswering"}));
    const std::vector<int64_t> ids = {9, 9, 2, 2, 9, 9, 2, 9, 2, 2, 9, 9, 2, 1};
    const auto question = read(*family_of(answers), {}, 7, ids);
    REQUIRE(question.ok());
    CHECK(question->words.at("global_rows") == std::vector<uint32_t>{0, 1, 7, ~0u});
    const auto no_question = read(*family_of(answers), {}, 7);
    REQUIRE_FALSE(no_question.ok());
    CHECK(test::contains(no_question.error().message, "has 0 separators (id 2)"));
  }

  TEST_CASE("longformer: layers have projections for global tokens") {
    const GoldenGraphs model = golden_graphs("longformer-bare");
    REQUIRE(row_of(model, "encoder.1.global.kv") != nullptr);
    CHECK(row_of(model, "encoder.1.global.kv")->rows == 16);
    CHECK(output_shape(model, "attentions.1", 2, 7) == Shape{2, 2, 7, 7});
    ChangedModel changed("longformer-masked");
    changed.check_resolves();
    changed.rename("layer.0.attention.self.query_global", "elsewhere");
    changed.check_refused("query_global");
  }
}

}  // namespace vkformer::testing
