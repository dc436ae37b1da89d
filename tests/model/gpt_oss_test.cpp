#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

Json gpt_oss() {
  return {{"model_type", "gpt_oss"},
          {"hidden_size", 32},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 40},
          {"max_position_embeddings", 64},
          {"vocab_size", 50},
          {"num_local_experts", 6},
          {"num_experts_per_tok", 2},
          {"head_dim", 8}};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gpt_oss: facts and the library's defaults") {
    const ModelFacts base = facts_of({{"model_type", "gpt_oss"}});
    CHECK(base.width == 2880);
    CHECK(base.decoder_layers == 36);
    CHECK(base.decoder_heads == 64);
    CHECK(base.target_vocab == 201088);
    CHECK(base.max_target == 131072);
    const ModelFacts facts = facts_of(gpt_oss());
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.rolling == ModelFacts::Rolling::kFree);
  }

  TEST_CASE("gpt_oss: hostile sizes and settings are refused") {
    check_sizes(gpt_oss(), {"hidden_size", "num_hidden_layers", "num_attention_heads",
                            "num_key_value_heads", "intermediate_size", "vocab_size",
                            "num_local_experts", "num_experts_per_tok", "sliding_window"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(gpt_oss(), "num_experts_per_tok", 7), invalid,
                  {"[num_experts_per_tok]", "7", "6"});
    check_refused(with(gpt_oss(), "swiglu_limit", 0), invalid, {"[swiglu_limit]", "0"});
    check_refused(with(gpt_oss(), "swiglu_limit", -7), invalid, {"[swiglu_limit]", "-7"});
    check_refused(with(gpt_oss(), "layer_types", {"full_attention"}), invalid,
                  {"[layer_types]", "1", "2"});
    check_refused(with(gpt_oss(), "layer_types", {"full_attention", "chunked_attention"}),
                  ErrorCode::kUnsupported, {"[layer_types]", "chunked_attention"});
  }

  TEST_CASE("gpt_oss: experts of one tensor, in the order of its columns") {
    const GoldenGraphs model = golden_graphs("gpt_oss-base");
    const WeightRow* up = row_of(model, "decoder.2.ffn.experts.up");
    REQUIRE(up != nullptr);
    CHECK(up->stack == WeightRow::Stack::kStacked);
    CHECK(up->axes == WeightRow::Axes::kInOut);
    CHECK(up->row_order.empty());
    CHECK(up->biases == std::vector<std::string>{"model.layers.2.mlp.experts.gate_up_proj_bias"});
    CHECK(row_of(model, "decoder.0.ffn.router")->biases.size() == 1);
  }

  TEST_CASE("gpt_oss: tensors that are missing or wrong are named") {
    ChangedModel model("gpt_oss-base");
    Tensor sinks = model.tensors.at("model.layers.1.self_attn.sinks");
    model.tensors.erase("model.layers.1.self_attn.sinks");
    const auto missing = model.resolve();
    REQUIRE_FALSE(missing.ok());
    CHECK(test::contains(missing.error().message, "model.layers.1.self_attn.sinks"));
    model.tensors.emplace("model.layers.1.self_attn.sinks", Tensor::zeros(DType::kF32, {3}));
    model.check_refused("model.layers.1.self_attn.sinks");
    model.tensors.at("model.layers.1.self_attn.sinks") = std::move(sinks);
    model.check_resolves();
    model.tensors.erase("model.layers.1.mlp.experts.down_proj_bias");
    model.check_refused("model.layers.1.mlp.experts.down_proj_bias");
  }
}

}  // namespace vkformer::testing
