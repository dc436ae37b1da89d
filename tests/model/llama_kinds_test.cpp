// Families with LLaMA's layers and switches of their own.
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

Json kin_of_llama(const char* family) {
  return {{"model_type", family},          {"hidden_size", 32},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4},      {"num_key_value_heads", 2}, {"intermediate_size", 40},
          {"max_position_embeddings", 64}, {"vocab_size", 50}};
}

constexpr const char* kKin[] = {"qwen3",   "gemma3_text", "olmo2",      "smollm3", "phi3",
                                "granite", "cohere",      "starcoder2", "stablelm"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("families with LLaMA's layers: facts and the library's defaults") {
    const auto base = [](const char* family) { return facts_of({{"model_type", family}}); };
    CHECK(base("qwen3").target_vocab == 151936);
    CHECK(base("qwen3").max_target == 32768);
    CHECK(base("gemma3_text").width == 2304);
    CHECK(base("gemma3_text").decoder_layers == 26);
    CHECK(base("gemma3_text").max_target == 131072);
    CHECK(base("olmo2").target_vocab == 50304);
    CHECK(base("smollm3").decoder_layers == 36);
    CHECK(base("smollm3").decoder_heads == 16);
    CHECK(base("phi3").width == 3072);
    CHECK(base("granite").width == 4096);
    CHECK(base("cohere").width == 8192);
    CHECK(base("cohere").max_target == 8192);
    CHECK(base("starcoder2").decoder_heads == 24);
    CHECK(base("stablelm").width == 2560);
    for (const char* family : kKin) {
      const ModelFacts facts = facts_of(kin_of_llama(family));
      CHECK(facts.family == family);
      CHECK(facts.kind == ModelKind::kDecoder);
      CHECK(facts.head == HeadKind::kLanguage);
      CHECK(facts.width == 32);
      CHECK(facts.rolling == ModelFacts::Rolling::kFree);
    }
  }

  TEST_CASE("families with LLaMA's layers: hostile sizes are refused") {
    for (const char* family : kKin) {
      check_sizes(kin_of_llama(family),
                  {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                   "intermediate_size", "max_position_embeddings", "vocab_size"});
      check_refused(with(kin_of_llama(family), "num_key_value_heads", 3), ErrorCode::kInvalidFile,
                    {"[num_key_value_heads]", "3", "4"});
      check_refused(with(kin_of_llama(family), "architectures", {"SomethingElse"}),
                    ErrorCode::kUnsupported, {"[architectures]", "SomethingElse"});
    }
  }

  TEST_CASE("gemma3: each type of layer has its rotary base, in both spellings") {
    const Json gemma = with(kin_of_llama("gemma3_text"), "head_dim", 6);
    const auto limit = [](const Json& config) { return facts_of(config).max_target; };
    CHECK(limit(with(gemma, "rope_scaling", {{"rope_type", "linear"}, {"factor", 8}})) == 512);
    CHECK(limit(with(gemma, "rope_parameters",
                     {{"full_attention", {{"rope_type", "linear"}, {"factor", 4}}}})) == 256);
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(gemma, "rope_local_base_freq", -1), invalid, {"theta"});
    check_refused(with(gemma, "rope_parameters", {{"sliding_attention", {{"rope_theta", 0}}}}),
                  invalid, {"theta"});
    check_refused(with(gemma, "sliding_window_pattern", 0), invalid, {"[sliding_window_pattern]"});
    check_refused(with(gemma, "query_pre_attn_scalar", 0), invalid, {"[query_pre_attn_scalar]"});
    check_refused(with(gemma, "final_logit_softcapping", -1), invalid,
                  {"[final_logit_softcapping]"});
    check_refused(with(gemma, "layer_types", {"full_attention"}), invalid,
                  {"[layer_types]", "1", "2"});
  }

  TEST_CASE("gemma3: attention in both directions is for models without a head") {
    const Json both =
        with(with(kin_of_llama("gemma3_text"), "head_dim", 6), "use_bidirectional_attention", true);
    check_refused(both, ErrorCode::kUnsupported, {"[use_bidirectional_attention]"});
    CHECK(facts_of(with(both, "architectures", {"Gemma3TextModel"})).head == HeadKind::kNone);
  }

  TEST_CASE("smollm3: layers without positions must be said for every layer") {
    const Json smol = kin_of_llama("smollm3");
    CHECK(load_config(with(smol, "no_rope_layers", {1, 0, 0})).ok());
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(smol, "no_rope_layers", {1}), invalid, {"[no_rope_layers]", "1", "2"});
    check_refused(with(smol, "no_rope_layer_interval", 0), invalid, {"[no_rope_layer_interval]"});
    check_refused(with(smol, "layer_types", {"full_attention", "sliding_attention"}), invalid,
                  {"[layer_types]", "sliding_window"});
  }

  TEST_CASE("phi3: longrope by the names of its older files") {
    const Json factors = Json::array({1.0, 1.5, 2.0, 2.5});
    for (const char* name : {"longrope", "su", "yarn"}) {
      const Json scaling = {{"type", name}, {"short_factor", factors}, {"long_factor", factors}};
      const Json phi = with(kin_of_llama("phi3"), "rope_scaling", scaling);
      CHECK(facts_of(phi).prompts == ModelFacts::Prompts::kExact);
    }
    const GoldenGraphs model = golden_graphs("phi3-windows");
    REQUIRE(row_of(model, "decoder.0.self.qkv") != nullptr);
    CHECK(row_of(model, "decoder.0.self.qkv")->sources ==
          std::vector<std::string>{"model.layers.0.self_attn.qkv_proj.weight"});
  }

  TEST_CASE("granite: multipliers must be numbers that one can divide by") {
    const Json granite = kin_of_llama("granite");
    check_refused(with(granite, "logits_scaling", 0), ErrorCode::kInvalidFile,
                  {"[logits_scaling]", "0"});
    check_refused(with(granite, "residual_multiplier", 1e300), ErrorCode::kInvalidFile,
                  {"[residual_multiplier]", "finite"});
    const GoldenGraphs model = golden_graphs("granite-biased");
    CHECK(row_of(model, "decoder.0.self.out")->bias_scale == 0.45f);
    CHECK(row_of(model, "decoder.0.self.qkv")->bias_scale == 1.0f);
  }

  TEST_CASE("olmo2, cohere, qwen3: a missing norm is named") {
    const std::pair<const char*, const char*> norms[] = {
        {"olmo2-biased", "model.layers.1.post_feedforward_layernorm.weight"},
        {"olmo2-biased", "model.layers.1.self_attn.k_norm.weight"},
        {"cohere-normed", "model.layers.0.input_layernorm.weight"},
        {"cohere-normed", "model.layers.0.self_attn.q_norm.weight"},
        {"qwen3-windows", "model.layers.2.self_attn.q_norm.weight"},
        {"stablelm-parallel", "model.layers.1.self_attn.k_layernorm.norms.1.weight"},
        {"starcoder2-window", "model.layers.1.post_attention_layernorm.bias"}};
    for (const auto& [name, tensor] : norms) {
      ChangedModel model(name);
      model.check_resolves();
      model.tensors.erase(tensor);
      model.check_refused(tensor);
    }
  }
}

}  // namespace vkformer::testing
