#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kEuroBert = {{"model_type", "eurobert"}, {"hidden_size", 24},
                        {"num_hidden_layers", 2},   {"num_attention_heads", 6},
                        {"num_key_value_heads", 3}, {"intermediate_size", 48},
                        {"vocab_size", 60},         {"max_position_embeddings", 32}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("eurobert: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kEuroBert);
    CHECK(facts.family == "eurobert");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.source_tokens.types == 0);
    CHECK(facts.max_source == 32);
    const ModelFacts base = facts_of({{"model_type", "eurobert"}});
    CHECK(base.source_vocab == 128256);
    CHECK(base.encoder_layers == 12);
    CHECK(base.max_source == 8192);
  }

  TEST_CASE("eurobert: hostile sizes and unknown switches are refused") {
    check_sizes(kEuroBert,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                 "intermediate_size", "vocab_size", "head_dim", "max_position_embeddings"});
    check_refused(with(kEuroBert, "num_key_value_heads", 4), ErrorCode::kInvalidFile,
                  {"[num_key_value_heads]", "4", "6 heads"});
    check_refused(with(kEuroBert, "head_dim", 5), ErrorCode::kInvalidFile, {"5 wide"});
    const Json classes =
        with(kEuroBert, "architectures", Json::array({"EuroBertForSequenceClassification"}));
    check_refused(with(classes, "classifier_pooling", "max"), ErrorCode::kUnsupported,
                  {"[classifier_pooling]", "'max'"});
    check_refused(with(kEuroBert, "architectures", Json::array({"EuroBertForQuestionAnswering"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("eurobert: graphs have the outputs of their heads") {
    const GoldenGraphs bare = golden_graphs("eurobert-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(row_of(bare, "encoder.0.self.qkv")->rows == 48);
    CHECK(row_of(bare, "encoder.0.self.qkv")->biases.size() == 3);
    CHECK(row_of(bare, "encoder.0.self.norm")->biases.empty());
    CHECK(row_of(bare, "encoder.0.ffn.up")->biases.empty());
    const GoldenGraphs masked = golden_graphs("eurobert-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"lm_head.bias"});
    for (const char* name : {"eurobert-classes", "eurobert-first", "eurobert-mean"}) {
      CHECK(output_shape(golden_graphs(name), "logits", 2, 7) == Shape{2, 3});
    }
  }

  TEST_CASE("eurobert: a head's tensor in the file wins over the words") {
    ChangedModel model("eurobert-masked");
    model.tensors["lm_head.weight"] = Tensor::from_floats({40, 16}, std::vector<float>(640));
    const auto untied = model.resolve();
    REQUIRE_MESSAGE(untied.ok(), untied.error().message);
    CHECK(row_of(*untied, "decoder")->sources == std::vector<std::string>{"lm_head.weight"});
    CHECK(row_of(*untied, "words")->biases.empty());
    model.config["mlp_bias"] = false;
    model.check_refused("mlp.");
  }
}

}  // namespace vkformer::testing
