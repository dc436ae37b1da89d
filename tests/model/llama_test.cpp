#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kLlama = {{"model_type", "llama"},         {"hidden_size", 24},
                     {"num_hidden_layers", 2},        {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},      {"intermediate_size", 40},
                     {"max_position_embeddings", 64}, {"vocab_size", 50}};

Json llama_as(const char* family) {
  return with(kLlama, "model_type", family);
}

Json rotary(const Json& parameters) {
  return with(kLlama, "rope_parameters", parameters);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("llama: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kLlama);
    CHECK(facts.family == "llama");
    CHECK(facts.architecture == "LlamaForCausalLM");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.width == 24);
    CHECK(facts.decoder_layers == 2);
    CHECK(facts.decoder_heads == 4);
    CHECK(facts.encoder_layers == 0);
    CHECK(facts.encoder_heads == 0);
    CHECK(facts.source_vocab == 50);
    CHECK(facts.target_vocab == 50);
    CHECK(facts.max_source == 64);
    CHECK(facts.max_target == 64);
    const ModelFacts base = facts_of({{"model_type", "llama"}});
    CHECK(base.width == 4096);
    CHECK(base.decoder_heads == 32);
    CHECK(base.max_target == 2048);
    CHECK(facts_of({{"model_type", "mistral"}}).max_target == 131072);
    CHECK(facts_of({{"model_type", "qwen2"}}).family == "qwen2");
  }

  TEST_CASE("llama: hostile sizes are refused by key and value") {
    check_sizes(kLlama,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
                 "intermediate_size", "head_dim", "max_position_embeddings", "vocab_size"});
    check_refused(with(kLlama, "num_key_value_heads", 3), ErrorCode::kInvalidFile,
                  {"[num_key_value_heads]", "3", "4"});
    check_refused(with(kLlama, "num_attention_heads", 5), ErrorCode::kInvalidFile, {"24", "5"});
    check_refused(with(kLlama, "head_dim", 7), ErrorCode::kInvalidFile, {"7", "even"});
    check_refused(with(llama_as("mistral"), "sliding_window", 0), ErrorCode::kInvalidFile,
                  {"[sliding_window]"});
  }

  TEST_CASE("gemma2: caps, scale and windows are read, and refused where impossible") {
    Json gemma = with(llama_as("gemma2"), "head_dim", 8);
    CHECK(facts_of(gemma).family == "gemma2");
    CHECK(facts_of(with(gemma, "attn_logit_softcapping", nullptr)).head == HeadKind::kLanguage);
    CHECK(facts_of(with(llama_as("gemma"), "head_dim", 8)).max_target == 64);
    const auto invalid = ErrorCode::kInvalidFile;
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      for (double cap : {0.0, -3.0, 1e-44, 1e39}) {
        check_refused(with(gemma, key, cap), invalid, {"[" + std::string(key) + "]", "above 0"});
      }
    }
    check_refused(with(gemma, "query_pre_attn_scalar", 0), invalid, {"[query_pre_attn_scalar]"});
    check_refused(with(gemma, "sliding_window", 0), invalid, {"[sliding_window]"});
    check_refused(with(gemma, "layer_types", Json::array({"full_attention"})), invalid,
                  {"[layer_types]", "1", "2"});
    check_refused(with(gemma, "use_bidirectional_attention", true), ErrorCode::kUnsupported,
                  {"[use_bidirectional_attention]"});
  }

  TEST_CASE("llama: heads of tokens and spans are refused as unsupported") {
    CHECK(facts_of(with(kLlama, "architectures", {"LlamaModel"})).head == HeadKind::kNone);
    for (const char* name :
         {"LlamaForTokenClassification", "LlamaForQuestionAnswering", "SomethingElse"}) {
      check_refused(with(kLlama, "architectures", {name}), ErrorCode::kUnsupported,
                    {"[architectures]", name});
    }
  }

  TEST_CASE("llama: rotary parameters are read in both spellings and refused where wrong") {
    const auto limit = [](const Json& config) { return facts_of(config).max_target; };
    CHECK(limit(rotary({{"rope_type", "linear"}, {"factor", 2.5}})) == 160);
    CHECK(limit(with(kLlama, "rope_scaling", {{"type", "dynamic"}, {"factor", 4}})) == 256);
    CHECK(limit(rotary({{"rope_type", "yarn"},
                        {"factor", 4.0},
                        {"original_max_position_embeddings", 16}})) == 64);
    CHECK(load_config(with(kLlama, "rope_theta", 500000)).ok());
    check_refused(rotary({{"rope_type", "linear"}}), ErrorCode::kInvalidFile, {"factor"});
    check_refused(rotary({{"rope_type", "mrope"}}), ErrorCode::kUnsupported,
                  {"[rope_type]", "mrope"});
    check_refused(rotary({{"full_attention", {{"rope_theta", 1e4}}}}), ErrorCode::kUnsupported,
                  {"[rope_parameters]", "full_attention"});
    CHECK(load_config(rotary({{"partial_rotary_factor", 0.7}})).ok());
    CHECK(load_config(with(kLlama, "partial_rotary_factor", 0.7)).ok());
    for (const double part : {-0.5, 0.0, 0.1, 1.5}) {
      check_refused(rotary({{"partial_rotary_factor", part}}), ErrorCode::kInvalidFile,
                    {"[partial_rotary_factor]"});
    }
    CHECK_FALSE(load_config(rotary({{"partial_rotary_factor", 0.5}})).ok());  // 3 columns of 6
    check_refused(rotary({{"rope_theta", -1.0}}), ErrorCode::kInvalidFile, {"theta"});
    CHECK_FALSE(load_config(with(kLlama, "rope_scaling", 3)).ok());
    check_refused(rotary({{"rope_type", "longrope"},
                          {"factor", 2.0},
                          {"short_factor", {1.0, 1.0, 1.0}},
                          {"long_factor", {1.0}}}),
                  ErrorCode::kInvalidFile, {"long_factor"});
  }

  TEST_CASE("llama: prompts are recorded exactly where the frequencies depend on their length") {
    const auto prompts = [](const char* kind) {
      return facts_of(rotary({{"rope_type", kind},
                              {"factor", 2.0},
                              {"short_factor", {1.0, 1.0, 1.0}},
                              {"long_factor", {2.0, 2.0, 2.0}}}))
          .prompts;
    };
    for (const char* kind : {"dynamic", "longrope"}) {
      CHECK(prompts(kind) == ModelFacts::Prompts::kExact);
    }
    for (const char* kind : {"default", "linear", "yarn", "llama3"}) {
      CHECK(prompts(kind) == ModelFacts::Prompts::kRounded);
    }
  }

  TEST_CASE("qwen2: which layers slide must be said consistently") {
    const Json sliding =
        with(with(llama_as("qwen2"), "use_sliding_window", true), "sliding_window", 4);
    CHECK(load_config(sliding).ok());
    CHECK(load_config(with(sliding, "max_window_layers", 0)).ok());
    check_refused(with(sliding, "layer_types", {"full_attention"}), ErrorCode::kInvalidFile,
                  {"[layer_types]", "1", "2"});
    check_refused(with(sliding, "layer_types", {"full_attention", "chunked_attention"}),
                  ErrorCode::kUnsupported, {"[layer_types]", "chunked_attention"});
    check_refused(with(llama_as("qwen2"), "layer_types", {"full_attention", "sliding_attention"}),
                  ErrorCode::kInvalidFile, {"[layer_types]", "use_sliding_window"});
  }

  TEST_CASE("llama: weights resolve tied, bare, with unused heads and with old buffers") {
    ChangedModel model("llama-gqa");
    model.check_resolves();
    Tensor spare = model.tensors.at("model.norm.weight");
    model.tensors.emplace("score.weight", spare);
    model.tensors.emplace("model.layers.0.self_attn.rotary_emb.inv_freq", spare);
    model.check_resolves();
    model.tensors.emplace("model.layers.0.self_attn.extra.weight", spare);
    model.check_refused("extra");
    ChangedModel untied("llama-gqa");
    untied.tensors.erase("lm_head.weight");
    untied.check_refused("lm_head.weight");
    untied.config["tie_word_embeddings"] = true;
    untied.check_resolves();
    ChangedModel bare("llama-gqa");
    bare.config["architectures"] = {"LlamaModel"};
    bare.check_resolves();
    bare.tensors.erase("lm_head.weight");
    bare.rename("model.", "");
    bare.check_resolves();
    const auto resolved = bare.resolve();
    CHECK(row_of(*resolved, "head") == nullptr);
    CHECK(row_of(*resolved, "embed") != nullptr);
  }

  TEST_CASE("llama: merged projections have the widths of grouped heads") {
    const auto model = ChangedModel("llama-gqa").resolve();
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    const WeightRow* qkv = row_of(*model, "decoder.0.self.qkv");
    REQUIRE(qkv != nullptr);
    CHECK(qkv->source_rows == std::vector<int64_t>{32, 16, 16});
    CHECK(qkv->rows == 64);
    CHECK(output_shape(*model, "logits", 2, 5) == Shape{2, 5, 90});
    CHECK(output_shape(*model, "last_hidden_state", 2, 5) == Shape{2, 5, 32});
    CHECK(output_shape(*model, "attentions.1", 2, 5) == Shape{2, 4, 5, 5});
    const Graph step = model->step({.batch = 3, .beams = 2, .capacity = 32, .prompt = 4});
    const TensorId cache = step.find_external("self_kv.1");
    REQUIRE(cache != kNoTensor);
    CHECK(step.tensor(cache).shape == Shape{6, 32, 32});
  }
}

}  // namespace vkformer::testing
