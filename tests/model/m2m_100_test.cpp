#include "model/encoder_cases.h"
#include "ops/embedding.h"

namespace vkformer::testing {
namespace {

const Json kM2m = {{"model_type", "m2m_100"},
                   {"d_model", 24},
                   {"encoder_layers", 2},
                   {"decoder_layers", 3},
                   {"encoder_ffn_dim", 48},
                   {"decoder_ffn_dim", 40},
                   {"vocab_size", 60},
                   {"encoder_attention_heads", 3},
                   {"max_position_embeddings", 32},
                   {"decoder_attention_heads", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("m2m_100: positions of both stacks come from the ids") {
    const ModelFacts facts = facts_of(kM2m);
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.target_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.source_tokens.pad == 1);
    CHECK(facts_of(with(kM2m, "pad_token_id", 7)).target_tokens.pad == 7);
    CHECK(facts.max_source == 32);
    const ModelFacts defaults = facts_of({{"model_type", "m2m_100"}});
    CHECK(defaults.source_vocab == 128112);
    CHECK(defaults.width == 1024);
    for (int64_t pad : {int64_t{-1}, int64_t{60}, INT64_MAX, INT64_MIN}) {
      check_refused(with(kM2m, "pad_token_id", pad), ErrorCode::kInvalidFile,
                    {"[pad_token_id]", std::to_string(pad)});
    }
  }

  TEST_CASE("m2m_100: hostile sizes and other heads are refused") {
    check_sizes(kM2m, {"d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim",
                       "decoder_ffn_dim", "vocab_size", "max_position_embeddings"});
    check_refused(with(kM2m, "architectures", Json::array({"M2M100ForSpeech"})),
                  ErrorCode::kUnsupported, {"[architectures]", "M2M100ForSpeech"});
  }

  TEST_CASE("m2m_100: the position table has a zero row for padding and one past the last token") {
    const GoldenGraphs model = golden_graphs("m2m100-base");
    const WeightRow* positions = row_of(model, "positions");
    REQUIRE(positions != nullptr);
    CHECK(positions->rows == 66);
    const auto at = [&](int64_t row, int64_t d) {
      return positions->computed[static_cast<size_t>(row * 32 + d)];
    };
    for (int64_t d = 0; d < 32; ++d) CHECK(at(1, d) == 0.0f);
    CHECK(at(0, 16) == 1.0f);  // cos 0
    CHECK(at(2, 0) == doctest::Approx(0.9092974268));
    CHECK(at(65, 31) == doctest::Approx(0.9999788751));  // cos(65 / 10000)
  }

  TEST_CASE("m2m_100: tables that older files hold are ignored, also in a bare model") {
    ChangedModel model("m2m100-base");
    model.tensors["model.encoder.embed_positions.weights"] =
        Tensor::from_floats({2, 32}, std::vector<float>(64));
    model.check_resolves();
    model.config["architectures"] = Json::array({"M2M100Model"});
    model.rename("model.", "");
    const auto bare = model.resolve();
    REQUIRE_MESSAGE(bare.ok(), bare.error().message);
    CHECK(bare->forward({2, 7, 5}).find_external("logits") == kNoTensor);
  }

  TEST_CASE("m2m_100: a step knows which id is padding") {
    const Graph step =
        golden_graphs("m2m100-base").step({.batch = 1, .beams = 2, .source = 16, .capacity = 32});
    bool found = false;
    for (const Node& node : step.nodes()) {
      if (node.op != static_cast<uint16_t>(OpId::k_embedding)) continue;
      found = true;
      const auto& attrs = attrs_of<EmbeddingAttrs>(node);
      CHECK(attrs.pad_id == 1);
      CHECK(attrs.position_offset == 2);
    }
    CHECK(found);
  }
}

}  // namespace vkformer::testing
