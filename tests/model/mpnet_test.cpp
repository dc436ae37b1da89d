#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kMpnet = {{"model_type", "mpnet"},        {"hidden_size", 24},
                     {"num_hidden_layers", 2},       {"num_attention_heads", 3},
                     {"intermediate_size", 48},      {"vocab_size", 60},
                     {"max_position_embeddings", 32}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("mpnet: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kMpnet);
    CHECK(facts.family == "mpnet");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.source_tokens.types == 0);
    CHECK(facts.max_source == 30);
    const ModelFacts base = facts_of({{"model_type", "mpnet"}});
    CHECK(base.source_vocab == 30527);
    CHECK(base.encoder_layers == 12);
    CHECK(base.max_source == 510);
  }

  TEST_CASE("mpnet: the pad token of positions is 1, whatever the configuration says") {
    const ModelFacts facts = facts_of(with(kMpnet, "pad_token_id", 5));
    CHECK(facts.source_tokens.pad == 1);
    CHECK(facts.max_source == 30);
    check_refused(with(kMpnet, "max_position_embeddings", 2), ErrorCode::kInvalidFile,
                  {"[pad_token_id]", "max_position_embeddings is 2"});
  }

  TEST_CASE("mpnet: hostile sizes, decoders, other heads and few buckets are refused") {
    check_sizes(kMpnet, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                         "intermediate_size", "vocab_size", "relative_attention_num_buckets"});
    check_refused(with(kMpnet, "relative_attention_num_buckets", 31), ErrorCode::kInvalidFile,
                  {"[relative_attention_num_buckets]", "31", "32"});
    check_refused(with(kMpnet, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kMpnet, "architectures", Json::array({"MPNetForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]", "MPNetForMultipleChoice"});
  }

  TEST_CASE("mpnet: graphs have the outputs of their heads") {
    const GoldenGraphs bare = golden_graphs("mpnet-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(bare, "pooler_output", 2, 7) == Shape{2, 16});
    const GoldenGraphs masked = golden_graphs("mpnet-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"lm_head.bias"});
    CHECK(output_shape(golden_graphs("mpnet-classes"), "logits", 2, 7) == Shape{2, 3});
  }

  TEST_CASE("mpnet: the biases by distance are read with the configured rows") {
    const char* name = "mpnet.encoder.relative_attention_bias.weight";
    ChangedModel model("mpnet-masked");
    model.tensors[name] = Tensor::from_floats({40, 2}, std::vector<float>(80));
    model.check_refused("relative_attention_bias");
    model.config["relative_attention_num_buckets"] = 40;
    model.check_resolves();
    model.tensors.erase(name);
    model.check_refused("relative_attention_bias");
  }
}

}  // namespace vkformer::testing
