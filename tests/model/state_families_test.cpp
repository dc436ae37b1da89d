// LFM2, Mamba-2, Falcon-H1, Granite 4 and Qwen3-Next: layers that carry states.
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

Json small_state_model(const char* family) {
  return {{"model_type", family},     {"hidden_size", 32},        {"num_hidden_layers", 4},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2}, {"intermediate_size", 40},
          {"vocab_size", 50}};
}

Json mamba2_model() {
  Json config = small_state_model("mamba2");
  config.update({{"num_heads", 4}, {"head_dim", 16}, {"n_groups", 2}, {"state_size", 8}});
  return config;
}

Json hybrid_state_model(const char* family) {
  Json config = small_state_model(family);
  config.update({{"mamba_n_heads", 4}, {"mamba_d_state", 8}, {"num_local_experts", 0}});
  config["mamba_d_ssm"] = nullptr;
  return config;
}

constexpr const char* kStateFamilies[] = {
    "lfm2", "mamba2", "falcon_h1", "granitemoehybrid", "qwen3_next", "qwen3_5_text"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("families with states: facts and the library's defaults") {
    for (const char* family : kStateFamilies) {
      CAPTURE(family);
      const ModelFacts facts = facts_of({{"model_type", family}});
      CHECK(facts.family == family);
      CHECK(facts.head == HeadKind::kLanguage);
      CHECK(facts.states == ModelFacts::States::kYes);
      CHECK(facts.slots == ModelFacts::Slots::kYes);
      CHECK(facts.rolling == ModelFacts::Rolling::kNo);
    }
    CHECK(facts_of({{"model_type", "lfm2"}}).width == 2560);
    CHECK(facts_of({{"model_type", "mamba2"}}).decoder_layers == 64);
    CHECK(facts_of({{"model_type", "mamba2"}}).decoder_heads == 0);
    CHECK(facts_of({{"model_type", "qwen3_next"}}).decoder_layers == 48);
  }

  TEST_CASE("families with states: sizes that do not go together are refused") {
    check_refused(with(mamba2_model(), "num_heads", 5), ErrorCode::kInvalidFile,
                  {"[num_heads]", "5", "16", "64"});
    check_refused(with(mamba2_model(), "n_groups", 3), ErrorCode::kInvalidFile,
                  {"[num_heads]", "3"});
    check_refused(with(mamba2_model(), "conv_kernel", 17), ErrorCode::kInvalidFile,
                  {"[conv_kernel]", "17", "16"});
    check_refused(with(mamba2_model(), "time_step_limit", Json::array({0.5, 0.25})),
                  ErrorCode::kInvalidFile, {"[time_step_limit]"});
    check_refused(with(mamba2_model(), "time_step_limit", Json::array({0.5})),
                  ErrorCode::kInvalidFile, {"[time_step_limit]", "1"});
    check_refused(with(hybrid_state_model("falcon_h1"), "ssm_multipliers", Json::array({1.0, 2.0})),
                  ErrorCode::kInvalidFile, {"[ssm_multipliers]", "2", "5"});
    check_refused(with(small_state_model("lfm2"), "block_ffn_dim_multiplier", 0.0),
                  ErrorCode::kInvalidFile, {"[block_ffn_dim_multiplier]", "0"});
    check_refused(with(small_state_model("lfm2"), "layer_types", Json::array({"conv"})),
                  ErrorCode::kInvalidFile, {"[layer_types]", "1", "4"});
    check_refused(with(small_state_model("lfm2"), "layer_types",
                       Json::array({"conv", "conv", "conv", "mamba"})),
                  ErrorCode::kUnsupported, {"[layer_types]", "'mamba'", "full_attention"});
    check_refused(with(small_state_model("qwen3_5_text"), "linear_num_key_heads", 5),
                  ErrorCode::kInvalidFile, {"[linear_num_key_heads]", "5", "32"});
  }

  TEST_CASE("families with states: limits of rates may be infinite") {
    const ModelFacts facts = facts_of(with(mamba2_model(), "time_step_limit",
                                           Json::array({0.0, Json{{"__float__", "Infinity"}}})));
    CHECK(facts.family == "mamba2");
    check_refused(
        with(mamba2_model(), "time_step_limit", Json::array({0.0, Json{{"__float__", "big"}}})),
        ErrorCode::kInvalidFile, {"[time_step_limit]", "a number"});
  }

  TEST_CASE("falcon_h1: multipliers are folded into rows") {
    const GoldenGraphs model = golden_graphs("falcon_h1-base");
    const WeightRow* qkv = row_of(model, "decoder.0.self.qkv");
    REQUIRE(qkv != nullptr);
    REQUIRE(static_cast<int64_t>(qkv->row_scales.size()) == qkv->rows);
    CHECK(qkv->row_scales.front() == doctest::Approx(1.3));
    CHECK(qkv->row_scales.back() == doctest::Approx(1.3));
    const WeightRow* up = row_of(model, "decoder.1.ffn.up");
    REQUIRE(up != nullptr);
    CHECK(up->row_scales.at(0) == doctest::Approx(1.4));
    CHECK(up->row_scales.at(1) == 1.0f);
    const WeightRow* taps = row_of(model, "decoder.0.mix.taps");
    REQUIRE(taps != nullptr);
    CHECK(taps->axes == WeightRow::Axes::kInOut);
  }
}

}  // namespace vkformer::testing
