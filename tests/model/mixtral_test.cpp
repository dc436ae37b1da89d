// Mixtral, Qwen3 with experts and OLMoE: LLaMA's layers with experts.
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

Json mixture(const char* family) {
  return {{"model_type", family},          {"hidden_size", 32},          {"num_hidden_layers", 3},
          {"num_attention_heads", 4},      {"num_key_value_heads", 2},   {"intermediate_size", 40},
          {"max_position_embeddings", 64}, {"vocab_size", 50},           {"num_experts", 6},
          {"num_experts_per_tok", 2},      {"moe_intermediate_size", 12}};
}

constexpr const char* kFamilies[] = {"mixtral", "qwen3_moe", "olmoe"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("mixtral, qwen3_moe, olmoe: facts and the library's defaults") {
    const auto base = [](const char* family) { return facts_of({{"model_type", family}}); };
    CHECK(base("mixtral").width == 4096);
    CHECK(base("mixtral").max_target == 131072);
    CHECK(base("qwen3_moe").width == 2048);
    CHECK(base("qwen3_moe").decoder_layers == 24);
    CHECK(base("olmoe").decoder_heads == 16);
    CHECK(base("olmoe").target_vocab == 50304);
    for (const char* family : kFamilies) {
      const ModelFacts facts = facts_of(mixture(family));
      CHECK(facts.family == family);
      CHECK(facts.head == HeadKind::kLanguage);
      CHECK(facts.rolling == ModelFacts::Rolling::kFree);
    }
  }

  TEST_CASE("mixtral, qwen3_moe, olmoe: hostile sizes and settings are refused") {
    for (const char* family : kFamilies) {
      check_sizes(mixture(family),
                  {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                   "intermediate_size", "vocab_size", "num_experts", "num_experts_per_tok"});
      check_refused(with(mixture(family), "num_experts_per_tok", 7), ErrorCode::kInvalidFile,
                    {"[num_experts_per_tok]", "7", "6"});
      check_refused(with(mixture(family), "num_experts", 5000), ErrorCode::kInvalidFile,
                    {"[num_experts]", "5000", "1024"});
    }
    check_refused(with(mixture("qwen3_moe"), "moe_intermediate_size", 0), ErrorCode::kInvalidFile,
                  {"[moe_intermediate_size]"});
    check_refused(with(mixture("qwen3_moe"), "decoder_sparse_step", 0), ErrorCode::kInvalidFile,
                  {"[decoder_sparse_step]"});
    check_refused(with(mixture("olmoe"), "clip_qkv", 8.0), ErrorCode::kUnsupported,
                  {"[clip_qkv]", "8", "null"});
  }

  TEST_CASE("experts: one by one in the file, or all in one tensor") {
    const GoldenGraphs apart = golden_graphs("mixtral-base");
    const WeightRow* up = row_of(apart, "decoder.1.ffn.experts.up");
    REQUIRE(up != nullptr);
    CHECK(up->experts == 5);
    CHECK(up->expert_rows == 40);
    CHECK(up->rows == 5 * 64);
    REQUIRE(up->sources.size() == 10);
    CHECK(up->sources[2] == "model.layers.1.block_sparse_moe.experts.1.w1.weight");
    CHECK(up->sources[3] == "model.layers.1.block_sparse_moe.experts.1.w3.weight");
    const WeightRow* router = row_of(apart, "decoder.1.ffn.router");
    REQUIRE(router != nullptr);
    CHECK(router->format == WeightRow::Format::kExact);
  }

  TEST_CASE("qwen3_moe: layers without experts keep their feed-forward layer") {
    const GoldenGraphs model = golden_graphs("qwen3_moe-base");
    CHECK(row_of(model, "decoder.0.ffn.experts.down") != nullptr);
    CHECK(row_of(model, "decoder.0.ffn.up") == nullptr);
    CHECK(row_of(model, "decoder.1.ffn.experts.down") == nullptr);
    CHECK(row_of(model, "decoder.1.ffn.up") != nullptr);
  }
}

}  // namespace vkformer::testing
