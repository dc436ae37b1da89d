#include "model/encoder_cases.h"
#include "weights/read_floats.h"

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
    const WeightRow* line = row_of(model, "decoder.0.self.line");
    REQUIRE(line != nullptr);
    REQUIRE(line->row_order.size() == 14);
    CHECK(line->row_order[0] == 10);
    CHECK(line->row_order[4] == 0);
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

  TEST_CASE("deepseek_v3: caches hold a latent a token, of whatever size attention takes") {
    const auto line_of = [](const Json& config) {
      const auto family = load_config(config);
      REQUIRE_MESSAGE(family.ok(), family.error().message);
      const Checkpoint none = Checkpoint::none();
      REQUIRE((*family)->prepare(none).ok());
      const auto table = (*family)->weight_table(none);
      REQUIRE_MESSAGE(table.ok(), table.error().message);
      const GoldenGraphs model{nullptr, planned_weights(*table, WeightFormat::kF16)};
      const StepShape shape{.batch = 1, .beams = 1, .capacity = 40, .prompt = 5};
      Graph step, prompt;
      ModelBuilder step_builder(step, model.weights), prompt_builder(prompt, model.weights);
      REQUIRE((*family)->build_step(step_builder, shape).ok());
      REQUIRE((*family)->build_prompt(prompt_builder, shape).ok());
      const std::string last = "self_kv." + std::to_string((*family)->facts().decoder_layers - 1);
      const Shape found = step.tensor(step.find_external(last)).shape;
      CHECK(prompt.tensor(prompt.find_external(last)).shape == found);
      REQUIRE(found.size() == 3);
      return found[2];
    };
    // 61 layers of DeepSeek-V3; keys and values of its 128 heads would be 40,960 numbers.
    CHECK(line_of({{"model_type", "deepseek_v3"}}) == 576);
    CHECK(line_of(deepseek()) == 14);
    CHECK(line_of(with(deepseek(), "kv_lora_rank", 572)) == 576);
    CHECK(line_of(with(deepseek(), "kv_lora_rank", 573)) == 4 * (10 + 7));
  }

  TEST_CASE("deepseek_v3: what expands latents is stored by head for steps") {
    const GoldenGraphs model = golden_graphs("deepseek_v3-base");
    const WeightRow* keys = row_of(model, "decoder.1.self.absorbed_keys");
    const WeightRow* values = row_of(model, "decoder.1.self.absorbed_values");
    REQUIRE(keys != nullptr);
    REQUIRE(values != nullptr);
    const auto checkpoint = Checkpoint::open(golden_case("deepseek_v3-base").path("model"));
    REQUIRE(checkpoint.ok());
    const auto all = read_floats(*checkpoint, keys->sources[0], {3 * 13, 10});
    const auto made_keys = keys->make(*checkpoint), made_values = values->make(*checkpoint);
    REQUIRE(all.ok());
    REQUIRE(made_keys.ok());
    REQUIRE(made_values.ok());
    REQUIRE(made_keys->values.size() == 3 * 10 * 6);
    REQUIRE(made_values->values.size() == 3 * 7 * 10);
    for (size_t head = 0; head < 3; ++head) {
      for (size_t k = 0; k < 10; ++k) {
        for (size_t i = 0; i < 6; ++i) {
          CHECK(made_keys->values[(head * 10 + k) * 6 + i] == (*all)[(head * 13 + i) * 10 + k]);
        }
        for (size_t i = 0; i < 7; ++i) {
          CHECK(made_values->values[(head * 7 + i) * 10 + k] ==
                (*all)[(head * 13 + 6 + i) * 10 + k]);
        }
      }
    }
    // A head without steps needs none.
    CHECK(row_of(golden_graphs("deepseek_v3-bare"), "decoder.0.self.absorbed_keys") == nullptr);
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
