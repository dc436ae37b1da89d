#include "model/blocks/resized_positions.h"
#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kBeit = {{"model_type", "beit"},     {"hidden_size", 24}, {"num_hidden_layers", 2},
                    {"num_attention_heads", 3}, {"image_size", 20},  {"patch_size", 4},
                    {"intermediate_size", 32}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("beit: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kBeit);
    CHECK(facts.family == "beit");
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.grid.height == 0);
    CHECK(facts.max_source == 26);
    CHECK(facts_of({{"model_type", "beit"}}).encoder_layers == 12);
  }

  TEST_CASE("beit: hostile sizes and unknown heads are refused") {
    check_sizes(kBeit,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"});
    check_refused(with(kBeit, "architectures", {"BeitForSemanticSegmentation"}),
                  ErrorCode::kUnsupported, {"[architectures]", "'BeitForSemanticSegmentation'"});
  }

  TEST_CASE("beit: tables of biases and scales of branches are named where they are missing") {
    for (const char* name :
         {"beit.encoder.layer.1.attention.attention.relative_position_bias."
          "relative_position_bias_table",
          "beit.encoder.layer.0.lambda_2", "beit.embeddings.position_embeddings"}) {
      ChangedModel model("beit-classes");
      model.check_resolves();
      model.tensors.erase(name);
      model.check_refused(name);
    }
    CHECK(row_of(golden_graphs("beit-bare"), "encoder.0.ffn.down")->row_scale ==
          "encoder.layer.0.lambda_2");
  }

  TEST_CASE("bilinear positions lie between their neighbors") {
    const std::vector<float> values = {0.0f, 2.0f, 4.0f};
    const std::vector<float> resized =
        resized_positions(values, {1, 3}, {1, 6}, 1, PositionFilter::kBilinear);
    const float wanted[] = {0.0f, 0.5f, 1.5f, 2.5f, 3.5f, 4.0f};
    REQUIRE(resized.size() == 6);
    for (size_t i = 0; i < 6; ++i) CHECK(resized[i] == doctest::Approx(wanted[i]));
  }
}

}  // namespace vkformer::testing
