#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kRoberta = {{"model_type", "roberta"},       {"hidden_size", 24},
                       {"num_hidden_layers", 2},        {"num_attention_heads", 3},
                       {"intermediate_size", 48},       {"vocab_size", 60},
                       {"max_position_embeddings", 32}, {"type_vocab_size", 1}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("roberta: positions come from the ids and begin after the pad token's") {
    const ModelFacts facts = facts_of(kRoberta);
    CHECK(facts.family == "roberta");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.source_tokens.pad == 1);
    CHECK(facts.source_tokens.types == 1);
    CHECK(facts.max_source == 30);
    CHECK(facts_of(with(kRoberta, "pad_token_id", 0)).max_source == 31);
    CHECK(facts_of(with(kRoberta, "pad_token_id", 30)).max_source == 1);
    CHECK(facts_of(with(kRoberta, "model_type", "xlm-roberta")).family == "xlm-roberta");
    CHECK(facts_of(with(kRoberta, "model_type", "camembert")).architecture == "CamembertModel");
    CHECK(facts_of({{"model_type", "camembert"}}).source_vocab == 30522);
    CHECK(facts_of({{"model_type", "roberta"}}).source_vocab == 50265);
    CHECK(facts_of({{"model_type", "xlm-roberta"}}).source_vocab == 30522);
    for (int64_t pad : {int64_t{-1}, int64_t{31}, INT64_MAX, INT64_MIN}) {
      check_refused(with(kRoberta, "pad_token_id", pad), ErrorCode::kInvalidFile,
                    {"[pad_token_id]", std::to_string(pad)});
    }
  }

  TEST_CASE("roberta: hostile sizes, decoders and other heads are refused") {
    check_sizes(kRoberta, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                           "intermediate_size", "vocab_size", "type_vocab_size"});
    check_refused(with(kRoberta, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kRoberta, "architectures", Json::array({"RobertaForCausalLM"})),
                  ErrorCode::kUnsupported, {"[architectures]", "RobertaForCausalLM"});
  }

  TEST_CASE("roberta: graphs have the outputs of their heads") {
    const GoldenGraphs base = golden_graphs("roberta-base");
    CHECK(output_shape(base, "last_hidden_state", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(base, "pooler_output", 2, 7) == Shape{2, 32});
    const GoldenGraphs masked = golden_graphs("roberta-mlm");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 77});
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"lm_head.bias"});
    CHECK(row_of(masked, "positions")->rows == 49);
  }

  TEST_CASE("roberta: a classifier has two layers, its tokens' one") {
    ChangedModel model("roberta-mlm");
    model.config["architectures"] = Json::array({"RobertaForTokenClassification"});
    model.config["num_labels"] = 3;
    model.check_refused("classifier.weight");
    model.tensors["classifier.weight"] = Tensor::from_floats({3, 32}, std::vector<float>(96));
    model.tensors["classifier.bias"] = Tensor::from_floats({3}, std::vector<float>(3));
    model.check_resolves();
    model.config["architectures"] = Json::array({"RobertaForSequenceClassification"});
    model.rename("classifier.", "classifier.out_proj.");
    model.check_refused("classifier.dense.weight");
    model.tensors["classifier.dense.weight"] =
        Tensor::from_floats({32, 32}, std::vector<float>(1024));
    model.tensors["classifier.dense.bias"] = Tensor::from_floats({32}, std::vector<float>(32));
    const auto classes = model.resolve();
    REQUIRE_MESSAGE(classes.ok(), classes.error().message);
    CHECK(output_shape(*classes, "logits", 2, 7) == Shape{2, 3});
  }
}

}  // namespace vkformer::testing
