#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

Json deepseek() {
  return {{"model_type", "deepseek_v3"},
          {"hidden_size", 32},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"intermediate_size", 40},
          {"max_position_embeddings", 64},
          {"vocab_size", 50},
          {"n_routed_experts", 8},
          {"num_experts_per_tok", 2},
          {"n_group", 4},
          {"topk_group", 2},
          {"moe_intermediate_size", 12},
          {"q_lora_rank", 12},
          {"kv_lora_rank", 10},
          {"qk_rope_head_dim", 4},
          {"qk_nope_head_dim", 6},
          {"v_head_dim", 7},
          {"first_k_dense_replace", 1}};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("deepseek_v3: facts and the library's defaults") {
    const ModelFacts base = facts_of({{"model_type", "deepseek_v3"}});
    CHECK(base.width == 7168);
    CHECK(base.decoder_layers == 61);
    CHECK(base.decoder_heads == 128);
    CHECK(base.target_vocab == 129280);
    CHECK(facts_of(deepseek()).head == HeadKind::kLanguage);
    const Json yarn =
        with(deepseek(), "rope_scaling",
             {{"type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 64}});
    CHECK(facts_of(yarn).max_target == 256);
  }

  TEST_CASE("deepseek_v3: hostile sizes and settings are refused") {
    check_sizes(deepseek(),
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "n_routed_experts", "num_experts_per_tok", "n_group", "topk_group",
                 "moe_intermediate_size", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim",
                 "qk_nope_head_dim", "v_head_dim", "n_shared_experts"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(deepseek(), "n_group", 3), invalid, {"[n_group]", "3", "8"});
    check_refused(with(deepseek(), "n_group", 8), invalid, {"[n_group]", "8"});
    check_refused(with(deepseek(), "topk_group", 5), invalid, {"[topk_group]", "5", "4"});
    check_refused(with(deepseek(), "num_experts_per_tok", 5), invalid, {"[topk_group]", "2", "5"});
    check_refused(with(deepseek(), "qk_rope_head_dim", 5), invalid, {"[qk_rope_head_dim]", "5"});
    check_refused(with(deepseek(), "qk_nope_head_dim", 254), ErrorCode::kUnsupported,
                  {"[qk_nope_head_dim]", "254", "256"});
    check_refused(with(deepseek(), "routed_scaling_factor", 1e300), invalid,
                  {"[routed_scaling_factor]"});
  }

  TEST_CASE("deepseek_v3: latents, with what turns first in a head") {
    const GoldenGraphs model = golden_graphs("deepseek_v3-base");
    const WeightRow* q = row_of(model, "decoder.0.self.q_b");
    REQUIRE(q != nullptr);
    REQUIRE(q->row_order.size() == 30);  // 3 heads of 6 and 4
    CHECK(q->row_order[0] == 6);
    CHECK(q->row_order[4] == 0);
    CHECK(q->row_order[10] == 16);
    const WeightRow* shared = row_of(model, "decoder.0.self.shared");
    REQUIRE(shared != nullptr);
    CHECK(shared->first_row == 10);
    CHECK(shared->rows == 4);
    const WeightRow* kv = row_of(model, "decoder.0.self.kv");
    REQUIRE(kv != nullptr);
    REQUIRE(kv->row_order.size() == 39);  // 3 heads of 6 and 7
    CHECK(kv->row_order[6] == 13);
    CHECK(kv->row_order[18] == 6);
    CHECK(row_of(model, "decoder.0.ffn.up") != nullptr);
    CHECK(row_of(model, "decoder.1.ffn.shared.up")->rows == 28);
    CHECK(row_of(model, "decoder.1.ffn.choice") != nullptr);
    CHECK(row_of(golden_graphs("deepseek_v3-bare"), "decoder.0.self.q") != nullptr);
  }

  TEST_CASE("deepseek_v3: tensors that are missing are named, those of further tokens ignored") {
    ChangedModel model("deepseek_v3-base");
    model.tensors.emplace("model.layers.2.embed_tokens.weight", Tensor::zeros(DType::kF32, {1}));
    model.check_resolves();
    for (const char* name : {"model.layers.1.mlp.gate.e_score_correction_bias",
                             "model.layers.0.self_attn.kv_a_layernorm.weight",
                             "model.layers.1.mlp.shared_experts.down_proj.weight",
                             "model.layers.1.mlp.experts.7.up_proj.weight"}) {
      ChangedModel without("deepseek_v3-base");
      without.tensors.erase(name);
      without.check_refused(name);
    }
  }
}

}  // namespace vkformer::testing
