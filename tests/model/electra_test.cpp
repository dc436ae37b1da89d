#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kElectra = {{"model_type", "electra"},  {"hidden_size", 24},
                       {"embedding_size", 12},     {"num_hidden_layers", 2},
                       {"num_attention_heads", 3}, {"intermediate_size", 48},
                       {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("electra: facts are the configuration's, and its pre-training is the discriminator") {
    const ModelFacts facts = facts_of(kElectra);
    CHECK(facts.family == "electra");
    CHECK(facts.width == 24);
    CHECK(facts.source_tokens.types == 2);
    const ModelFacts base = facts_of({{"model_type", "electra"}});
    CHECK(base.width == 256);
    CHECK(base.encoder_heads == 4);
    const Json discriminator =
        with(kElectra, "architectures", Json::array({"ElectraForPreTraining"}));
    CHECK(facts_of(discriminator).head == HeadKind::kDiscriminator);
    CHECK(facts_of(discriminator).target_vocab == 0);
    const Json generator = with(kElectra, "architectures", Json::array({"ElectraForMaskedLM"}));
    CHECK(facts_of(generator).head == HeadKind::kMasked);
  }

  TEST_CASE("electra: hostile sizes, decoders and other heads are refused") {
    check_sizes(kElectra, {"hidden_size", "embedding_size", "num_hidden_layers",
                           "num_attention_heads", "intermediate_size", "vocab_size"});
    check_refused(with(kElectra, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kElectra, "architectures", Json::array({"ElectraForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("electra: a narrow embedding is projected, a wide one is not") {
    const GoldenGraphs narrow = golden_graphs("electra-base");
    REQUIRE(row_of(narrow, "embedding.projection") != nullptr);
    CHECK(row_of(narrow, "embedding.projection")->width == 16);
    CHECK(output_shape(narrow, "hidden_states.0", 2, 7) == Shape{2, 7, 32});
    CHECK(output_shape(narrow, "pooler_output", 2, 7).empty());
    const GoldenGraphs wide = golden_graphs("electra-disc");
    CHECK(row_of(wide, "embedding.projection") == nullptr);
    CHECK(output_shape(wide, "logits", 2, 7) == Shape{2, 7});
  }
}

}  // namespace vkformer::testing
