#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kWaves = {{"model_type", "wav2vec2"},
                     {"hidden_size", 12},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 2},
                     {"intermediate_size", 10},
                     {"conv_dim", Json::array({6, 8})},
                     {"conv_kernel", Json::array({10, 3})},
                     {"conv_stride", Json::array({5, 2})},
                     {"num_conv_pos_embeddings", 4},
                     {"num_conv_pos_embedding_groups", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("wav2vec2, hubert: facts are the configuration's, and of an empty one the library's") {
    CHECK(facts_of(kWaves).width == 12);
    for (const char* family : {"wav2vec2", "hubert"}) {
      const ModelFacts base = facts_of({{"model_type", family}});
      CHECK(base.width == 768);
      CHECK(base.encoder_layers == 12);
      CHECK(base.source == SourceKind::kWaveform);
    }
    const Json ctc = with(kWaves, "architectures", Json::array({"Wav2Vec2ForCTC"}));
    CHECK(facts_of(with(ctc, "vocab_size", 20)).target_vocab == 20);
  }

  TEST_CASE("wav2vec2, hubert: hostile sizes and settings that are not done are refused") {
    check_sizes(kWaves, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                         "intermediate_size", "num_conv_pos_embeddings"});
    check_refused(with(kWaves, "num_conv_pos_embedding_groups", 5), ErrorCode::kInvalidFile,
                  {"[num_conv_pos_embedding_groups]", "5", "12"});
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kWaves, "add_adapter", true), unsupported, {"[add_adapter]", "wav2vec2"});
    const Json adapted = with(kWaves, "adapter_attn_dim", 16);
    CHECK(facts_of(adapted).width == 12);
    check_refused(with(adapted, "do_stable_layer_norm", true), unsupported,
                  {"[adapter_attn_dim]", "16"});
    const Json none = with(with(kWaves, "adapter_attn_dim", nullptr), "do_stable_layer_norm", true);
    CHECK(facts_of(none).width == 12);
    const Json hubert = with(kWaves, "model_type", "hubert");
    check_refused(with(hubert, "conv_pos_batch_norm", true), unsupported,
                  {"[conv_pos_batch_norm]"});
  }

  TEST_CASE("wav2vec2: a missing part of the convolution for positions is named") {
    ChangedModel model("wav2vec2-bare");
    REQUIRE(model.resolve().ok());
    model.tensors.erase("encoder.pos_conv_embed.conv.parametrizations.weight.original0");
    model.check_refused("original0");
  }
}

}  // namespace vkformer::testing
