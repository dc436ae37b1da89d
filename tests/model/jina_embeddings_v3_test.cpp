#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kJina = {
    {"model_type", "jina_embeddings_v3"}, {"hidden_size", 24},       {"num_hidden_layers", 2},
    {"num_attention_heads", 3},           {"intermediate_size", 48}, {"vocab_size", 60},
    {"max_position_embeddings", 32}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("jina_embeddings_v3: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kJina);
    CHECK(facts.family == "jina_embeddings_v3");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kCounted);
    CHECK(facts.source_tokens.types == 1);
    CHECK(facts.max_source == 32);
    const ModelFacts base = facts_of({{"model_type", "jina_embeddings_v3"}});
    CHECK(base.source_vocab == 250002);
    CHECK(base.width == 1024);
    CHECK(base.encoder_layers == 24);
    CHECK(base.max_source == 8194);
  }

  TEST_CASE("jina_embeddings_v3: hostile sizes, adapters and other positions are refused") {
    check_sizes(kJina,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "max_position_embeddings", "type_vocab_size", "head_dim"});
    check_refused(with(kJina, "lora_adaptations", Json::array({"classification"})),
                  ErrorCode::kUnsupported, {"[lora_adaptations]"});
    check_refused(with(kJina, "position_embedding_type", "alibi"), ErrorCode::kUnsupported,
                  {"[position_embedding_type]", "'alibi'"});
    check_refused(with(kJina, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kJina, "architectures", Json::array({"JinaEmbeddingsV3ForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("jina_embeddings_v3: graphs have the outputs of their heads") {
    const GoldenGraphs bare = golden_graphs("jina_embeddings_v3-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(bare, "pooler_output", 2, 7) == Shape{2, 16});
    CHECK(row_of(bare, "encoder.0.self.qkv")->biases.size() == 1);
    CHECK(row_of(bare, "positions") == nullptr);
    const GoldenGraphs masked = golden_graphs("jina_embeddings_v3-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"lm_head.bias"});
    ChangedModel model("jina_embeddings_v3-masked");
    model.tensors.erase("roberta.encoder.layers.1.mixer.Wqkv.bias");
    model.check_refused("roberta.encoder.layers.1.mixer.Wqkv.bias");
  }
}

}  // namespace vkformer::testing
