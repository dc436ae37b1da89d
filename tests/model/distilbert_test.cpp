#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kDistilBert = {
    {"model_type", "distilbert"}, {"dim", 24},       {"n_layers", 2}, {"n_heads", 3},
    {"hidden_dim", 48},           {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("distilbert: facts are the configuration's, without token types") {
    const ModelFacts facts = facts_of(kDistilBert);
    CHECK(facts.family == "distilbert");
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.source_tokens.types == 0);
    CHECK(facts.max_source == 512);
    const ModelFacts base = facts_of({{"model_type", "distilbert"}});
    CHECK(base.encoder_layers == 6);
    CHECK(base.width == 768);
  }

  TEST_CASE("distilbert: hostile sizes and other heads are refused") {
    check_sizes(kDistilBert, {"dim", "n_layers", "n_heads", "hidden_dim", "vocab_size",
                              "max_position_embeddings"});
    check_refused(with(kDistilBert, "architectures", Json::array({"DistilBertForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]", "DistilBertForMultipleChoice"});
  }

  TEST_CASE("distilbert: graphs have the outputs of their heads") {
    const GoldenGraphs base = golden_graphs("distilbert-base");
    CHECK(output_shape(base, "last_hidden_state", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(base, "pooler_output", 2, 7).empty());
    CHECK(output_shape(golden_graphs("distilbert-sentiment"), "logits", 3, 7) == Shape{3, 2});
  }

  TEST_CASE("distilbert: masked-word and answer heads have their modules") {
    ChangedModel model("distilbert-sentiment");
    model.config["architectures"] = Json::array({"DistilBertForQuestionAnswering"});
    model.check_refused("qa_outputs.weight");
    model.tensors["qa_outputs.weight"] = Tensor::from_floats({2, 32}, std::vector<float>(64));
    model.tensors["qa_outputs.bias"] = Tensor::from_floats({2}, std::vector<float>{0.0f, 1.0f});
    model.check_resolves();
    model.config["architectures"] = Json::array({"DistilBertForMaskedLM"});
    model.check_refused("vocab_projector.bias");
    model.tensors["vocab_projector.bias"] = Tensor::from_floats({80}, std::vector<float>(80));
    model.check_refused("vocab_transform.weight");
    model.tensors["vocab_transform.weight"] =
        Tensor::from_floats({32, 32}, std::vector<float>(1024));
    for (const char* name :
         {"vocab_transform.bias", "vocab_layer_norm.weight", "vocab_layer_norm.bias"}) {
      model.tensors[name] = Tensor::from_floats({32}, std::vector<float>(32));
    }
    const auto masked = model.resolve();
    REQUIRE_MESSAGE(masked.ok(), masked.error().message);
    CHECK(output_shape(*masked, "logits", 2, 7) == Shape{2, 7, 80});
    CHECK(row_of(*masked, "words")->biases == std::vector<std::string>{"vocab_projector.bias"});
  }
}

}  // namespace vkformer::testing
