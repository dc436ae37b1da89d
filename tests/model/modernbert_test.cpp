#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kModernBert = {{"model_type", "modernbert"},   {"hidden_size", 24},
                          {"num_hidden_layers", 4},       {"num_attention_heads", 3},
                          {"intermediate_size", 40},      {"vocab_size", 60},
                          {"max_position_embeddings", 64}};

Json modernbert_rotary(const Json& parameters) {
  return with(kModernBert, "rope_parameters",
              {{"full_attention", parameters}, {"sliding_attention", {{"rope_theta", 100.0}}}});
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("modernbert: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kModernBert);
    CHECK(facts.family == "modernbert");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.encoder_layers == 4);
    CHECK(facts.max_source == 64);
    CHECK(facts.source_tokens.types == 0);
    const ModelFacts base = facts_of({{"model_type", "modernbert"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 22);
    CHECK(base.max_source == 8192);
  }

  TEST_CASE("modernbert: hostile sizes and unknown switches are refused") {
    check_sizes(kModernBert,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "max_position_embeddings", "global_attn_every_n_layers"});
    check_refused(with(kModernBert, "layer_types", Json::array({"full_attention"})),
                  ErrorCode::kInvalidFile, {"[layer_types]", "1 layers", "4"});
    check_refused(with(kModernBert, "layer_types", Json::array({"a", "b", "c", "d"})),
                  ErrorCode::kUnsupported, {"[layer_types]", "'a'"});
    check_refused(with(kModernBert, "local_attention", -2), ErrorCode::kInvalidFile,
                  {"[local_attention]", "-2"});
    check_refused(with(kModernBert, "num_attention_heads", 8), ErrorCode::kInvalidFile,
                  {"[num_attention_heads]", "3 wide"});
    const Json classifier =
        with(kModernBert, "architectures", Json::array({"ModernBertForSequenceClassification"}));
    check_refused(with(classifier, "classifier_pooling", "max"), ErrorCode::kUnsupported,
                  {"[classifier_pooling]", "max"});
    CHECK(facts_of(with(classifier, "classifier_pooling", "mean")).labels.size() == 2);
    check_refused(with(kModernBert, "architectures", Json::array({"ModernBertForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("modernbert: rotary parameters are read for each type of layer") {
    CHECK(load_config(modernbert_rotary({{"rope_type", "linear"}, {"factor", 2.0}})).ok());
    CHECK_FALSE(load_config(modernbert_rotary({{"rope_type", "linear"}})).ok());
    const auto unknown = load_config(modernbert_rotary({{"rope_type", "spiral"}}));
    REQUIRE_FALSE(unknown.ok());
    CHECK(test::contains(unknown.error().message, "spiral"));
    CHECK_FALSE(load_config(with(kModernBert, "global_rope_theta", -1.0)).ok());
    CHECK_FALSE(load_config(with(kModernBert, "rope_parameters", 3)).ok());
    CHECK_FALSE(load_config(with(kModernBert, "rope_parameters", {{"full_attention", 3}})).ok());
  }

  TEST_CASE("modernbert: biases are where the configuration says") {
    const GoldenGraphs bare = golden_graphs("modernbert-base");
    CHECK(row_of(bare, "encoder.0.self.norm") == nullptr);
    CHECK(row_of(bare, "encoder.1.self.norm")->biases.empty());
    CHECK(row_of(bare, "encoder.0.ffn.up")->biases.empty());
    CHECK(row_of(bare, "encoder.0.ffn.up")->rows == 96);
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 32});
    const GoldenGraphs masked = golden_graphs("modernbert-mlm");
    CHECK(row_of(masked, "encoder.1.self.norm")->biases.size() == 1);
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"decoder.bias"});
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 70});
    ChangedModel unbiased("modernbert-mlm");
    unbiased.config["decoder_bias"] = false;
    unbiased.check_resolves();
    unbiased.config["mlp_bias"] = false;
    unbiased.check_refused("mlp.");
  }

  TEST_CASE("modernbert: heads share their modules' names") {
    ChangedModel model("modernbert-mlm");
    model.config["num_labels"] = 3;
    model.tensors["classifier.weight"] = Tensor::from_floats({3, 24}, std::vector<float>(72));
    model.tensors["classifier.bias"] = Tensor::from_floats({3}, std::vector<float>(3));
    const auto shape_as = [&](const char* name) {
      model.config["architectures"] = Json::array({name});
      const auto built = model.resolve();
      REQUIRE_MESSAGE(built.ok(), built.error().message);
      return output_shape(*built, "logits", 2, 7);
    };
    CHECK(shape_as("ModernBertForSequenceClassification") == Shape{2, 3});
    CHECK(shape_as("ModernBertForTokenClassification") == Shape{2, 7, 3});
    model.config["architectures"] = Json::array({"ModernBertForQuestionAnswering"});
    model.check_refused("classifier.weight");
  }
}

}  // namespace vkformer::testing
