#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kNomic = {{"model_type", "nomic_bert"},   {"hidden_size", 24},
                     {"num_hidden_layers", 2},       {"num_attention_heads", 3},
                     {"intermediate_size", 48},      {"vocab_size", 60},
                     {"max_position_embeddings", 32}};

// As published before the library knew the family.
const Json kOlderNomic = {{"model_type", "nomic_bert"},
                          {"n_embd", 24},
                          {"n_layer", 2},
                          {"n_head", 3},
                          {"n_inner", 48},
                          {"n_positions", 64},
                          {"vocab_size", 60},
                          {"activation_function", "swiglu"},
                          {"layer_norm_epsilon", 1e-12},
                          {"qkv_proj_bias", false},
                          {"mlp_fc1_bias", false},
                          {"mlp_fc2_bias", false},
                          {"rotary_emb_fraction", 1.0},
                          {"rotary_emb_base", 1000},
                          {"rotary_scaling_factor", nullptr},
                          {"type_vocab_size", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("nomic_bert: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kNomic);
    CHECK(facts.family == "nomic_bert");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kCounted);
    CHECK(facts.source_tokens.types == 2);
    CHECK(facts.max_source == 32);
    const ModelFacts base = facts_of({{"model_type", "nomic_bert"}});
    CHECK(base.source_vocab == 30528);
    CHECK(base.encoder_layers == 12);
    CHECK(base.max_source == 2048);
  }

  TEST_CASE("nomic_bert: older keys mean the same") {
    const ModelFacts facts = facts_of(kOlderNomic);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.max_source == 64);
    CHECK(facts_of(with(kOlderNomic, "activation_function", "geglu")).width == 24);
    check_refused(with(kOlderNomic, "activation_function", "gelu"), ErrorCode::kUnsupported,
                  {"[activation_function]", "'gelu'"});
    for (const char* key : {"prenorm", "parallel_block", "causal", "use_rms_norm", "qkv_proj_bias",
                            "mlp_fc1_bias", "mlp_fc2_bias", "rotary_emb_interleaved"}) {
      check_refused(with(kOlderNomic, key, true), ErrorCode::kUnsupported,
                    {"[" + std::string(key) + "]"});
    }
    for (const char* key :
         {"rotary_emb_fraction", "rotary_scaling_factor", "rotary_emb_scale_base"}) {
      check_refused(with(kOlderNomic, key, 0.5), ErrorCode::kUnsupported,
                    {"[" + std::string(key) + "]"});
    }
  }

  TEST_CASE("nomic_bert: hostile sizes, experts, parts of heads and other heads are refused") {
    check_sizes(kNomic,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "max_position_embeddings", "head_dim", "type_vocab_size"});
    check_refused(with(kNomic, "num_experts", 8), ErrorCode::kUnsupported, {"[num_experts]", "8"});
    check_refused(with(kNomic, "head_dim", 7), ErrorCode::kInvalidFile,
                  {"[num_attention_heads]", "7 wide"});
    check_refused(with(kNomic, "partial_rotary_factor", 0.5), ErrorCode::kUnsupported,
                  {"[partial_rotary_factor]", "4 of 8"});
    check_refused(with(kNomic, "position_embedding_type", "absolute"), ErrorCode::kUnsupported,
                  {"[position_embedding_type]", "'absolute'"});
    check_refused(with(kNomic, "rope_parameters", {{"rope_type", "linear"}}),
                  ErrorCode::kInvalidFile, {"factor"});
    check_refused(with(kNomic, "architectures", Json::array({"NomicBertForQuestionAnswering"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("nomic_bert: graphs have the outputs of their heads, and layers no biases") {
    const GoldenGraphs bare = golden_graphs("nomic_bert-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(bare, "pooler_output", 2, 7).empty());
    CHECK(row_of(bare, "encoder.0.self.qkv")->rows == 36);
    CHECK(row_of(bare, "encoder.0.self.qkv")->biases.empty());
    CHECK(row_of(bare, "encoder.0.ffn.up")->rows == 40);
    CHECK(row_of(bare, "positions") == nullptr);
    CHECK(row_of(bare, "types")->rows == 2);
    const GoldenGraphs masked = golden_graphs("nomic_bert-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"cls.predictions.bias"});
  }

  TEST_CASE("nomic_bert: older files have BERT's prefix") {
    ChangedModel model("nomic_bert-masked");
    model.rename("nomic_bert.", "bert.");
    model.check_resolves();
    model.tensors.erase("bert.encoder.layers.1.mlp.fc12.weight");
    model.check_refused("bert.encoder.layers.1.mlp.fc12.weight");
  }
}

}  // namespace vkformer::testing
