#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kSpeechT5 = {{"model_type", "speecht5"},
                        {"hidden_size", 16},
                        {"vocab_size", 40},
                        {"encoder_layers", 1},
                        {"decoder_layers", 2},
                        {"encoder_attention_heads", 2},
                        {"decoder_attention_heads", 4},
                        {"encoder_ffn_dim", 20},
                        {"decoder_ffn_dim", 24},
                        {"conv_dim", Json::array({6, 8})},
                        {"conv_kernel", Json::array({10, 3})},
                        {"conv_stride", Json::array({5, 2})},
                        {"num_conv_pos_embeddings", 4},
                        {"num_conv_pos_embedding_groups", 2},
                        {"encoder_max_relative_position", 4},
                        {"max_text_positions", 32}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("speecht5: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kSpeechT5);
    CHECK(facts.source == SourceKind::kWaveform);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.encoder_heads == 2);
    CHECK(facts.decoder_heads == 4);
    CHECK(facts.max_target == 32);
    CHECK(facts.wave.samples_per_frame == 10);
    CHECK(facts.wave.least_samples == 20);
    const ModelFacts base = facts_of({{"model_type", "speecht5"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 12);
    CHECK(base.decoder_layers == 6);
    CHECK(base.target_vocab == 81);
    CHECK(base.max_target == 450);
    CHECK(base.wave.samples_per_frame == 320);
  }

  TEST_CASE("speecht5: hostile sizes and settings that are not done are refused") {
    check_sizes(kSpeechT5,
                {"hidden_size", "vocab_size", "encoder_layers", "decoder_layers",
                 "encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim",
                 "decoder_ffn_dim", "max_text_positions", "encoder_max_relative_position"});
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kSpeechT5, "pad_token_id", 0), unsupported, {"[pad_token_id]", "0", "39"});
    check_refused(with(kSpeechT5, "architectures", Json::array({"SpeechT5ForTextToSpeech"})),
                  unsupported, {"SpeechT5ForTextToSpeech", "SpeechT5ForSpeechToText"});
    check_refused(with(kSpeechT5, "feat_extract_norm", "batch"), ErrorCode::kInvalidFile,
                  {"[feat_extract_norm]", "batch"});
  }

  TEST_CASE("speecht5: a missing or misshaped tensor is named") {
    ChangedModel model("speecht5-base");
    REQUIRE(model.resolve().ok());
    model.tensors.erase("speecht5.encoder.wrapped_encoder.embed_positions.pe_k.weight");
    model.check_refused("pe_k");
  }
}

}  // namespace vkformer::testing
