#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kLed = {{"model_type", "led"},
                   {"d_model", 24},
                   {"encoder_layers", 2},
                   {"decoder_layers", 3},
                   {"encoder_ffn_dim", 48},
                   {"decoder_ffn_dim", 40},
                   {"vocab_size", 60},
                   {"encoder_attention_heads", 3},
                   {"decoder_attention_heads", 2},
                   {"max_encoder_position_embeddings", 64},
                   {"max_decoder_position_embeddings", 32},
                   {"attention_window", 8}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("led: facts are a BART's, with positions that begin at row 0") {
    const ModelFacts facts = facts_of(kLed);
    CHECK(facts.family == "led");
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.max_source == 64);
    CHECK(facts.max_target == 32);
    const ModelFacts defaults = facts_of({{"model_type", "led"}});
    CHECK(defaults.max_source == 16384);
    CHECK(defaults.max_target == 1024);
    CHECK(defaults.width == 1024);
    CHECK(facts_of(with(kLed, "architectures", Json::array({"LEDModel"}))).head == HeadKind::kNone);
  }

  TEST_CASE("led: hostile sizes, windows and other heads are refused") {
    check_sizes(
        kLed, {"d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim",
               "vocab_size", "encoder_attention_heads", "decoder_attention_heads",
               "max_encoder_position_embeddings", "max_decoder_position_embeddings"});
    check_refused(with(kLed, "attention_window", 0), ErrorCode::kInvalidFile,
                  {"[attention_window]", "is 0"});
    check_refused(with(kLed, "attention_window", Json::array({2, 2, 2})), ErrorCode::kInvalidFile,
                  {"3 values", "2 layers"});
    check_refused(with(kLed, "architectures", Json::array({"LEDForQuestionAnswering"})),
                  ErrorCode::kUnsupported, {"LEDForQuestionAnswering"});
  }

  TEST_CASE("led: encoder layers have Longformer's names, decoder layers BART's") {
    const GoldenGraphs model = golden_graphs("led-base");
    REQUIRE(row_of(model, "encoder.0.global.q") != nullptr);
    CHECK(row_of(model, "decoder.positions")->rows == 24);
    CHECK(row_of(model, "head")->sources == std::vector<std::string>{"led.shared.weight"});
    ChangedModel changed("led-base");
    changed.rename("layers.1.self_attn.longformer_self_attn.value_global", "elsewhere");
    changed.check_refused("value_global");
  }
}

}  // namespace vkformer::testing
