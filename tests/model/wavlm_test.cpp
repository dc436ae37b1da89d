#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kWavLm = {{"model_type", "wavlm"},
                     {"hidden_size", 12},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 2},
                     {"intermediate_size", 10},
                     {"conv_dim", Json::array({6, 8})},
                     {"conv_kernel", Json::array({10, 3})},
                     {"conv_stride", Json::array({5, 2})},
                     {"num_buckets", 12},
                     {"max_bucket_distance", 9},
                     {"num_conv_pos_embeddings", 4},
                     {"num_conv_pos_embedding_groups", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("wavlm: facts are the configuration's, and of an empty one the library's") {
    CHECK(facts_of(kWavLm).width == 12);
    const ModelFacts base = facts_of({{"model_type", "wavlm"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 12);
    CHECK(base.encoder_heads == 12);
    CHECK(base.source == SourceKind::kWaveform);
    const Json ctc = with(kWavLm, "architectures", Json::array({"WavLMForCTC"}));
    CHECK(facts_of(with(ctc, "vocab_size", 20)).target_vocab == 20);
  }

  TEST_CASE("wavlm: hostile sizes and settings that are not done are refused") {
    check_sizes(kWavLm, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                         "intermediate_size", "num_buckets", "max_bucket_distance"});
    check_refused(with(kWavLm, "num_buckets", 3), ErrorCode::kInvalidFile,
                  {"[num_buckets]", "3", "9"});
    check_refused(with(kWavLm, "max_bucket_distance", 3), ErrorCode::kInvalidFile,
                  {"[max_bucket_distance]", "3", "12"});
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kWavLm, "add_adapter", true), unsupported, {"[add_adapter]", "wavlm"});
    check_refused(with(kWavLm, "architectures", Json::array({"WavLMForXVector"})), unsupported,
                  {"WavLMForXVector"});
  }

  TEST_CASE("wavlm: a missing or misshaped part of the gated bias is named") {
    const std::string attention = "encoder.layers.0.attention.";
    for (const char* part : {"rel_attn_embed.weight", "gru_rel_pos_linear.weight",
                             "gru_rel_pos_linear.bias", "gru_rel_pos_const"}) {
      ChangedModel model("wavlm-bare");
      REQUIRE(model.resolve().ok());
      model.tensors.erase(attention + part);
      model.check_refused(part);
    }
  }
}

}  // namespace vkformer::testing
