#include "model/blocks/resized_positions.h"
#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kDinov2 = {{"model_type", "dinov2"},   {"hidden_size", 24}, {"num_hidden_layers", 2},
                      {"num_attention_heads", 3}, {"mlp_ratio", 2},    {"image_size", 28},
                      {"patch_size", 7}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("dinov2: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kDinov2);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.grid.height == 0);
    const ModelFacts base = facts_of({{"model_type", "dinov2_with_registers"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_heads == 12);
  }

  TEST_CASE("dinov2: hostile sizes, heads and registers are refused") {
    check_sizes(kDinov2, {"hidden_size", "num_hidden_layers", "num_attention_heads"});
    const auto invalid = ErrorCode::kInvalidFile;
    for (const char* key : {"image_size", "patch_size"}) {
      for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
        check_refused(with(kDinov2, key, size), invalid, {"[" + std::string(key) + "]"});
      }
    }
    check_refused(with(kDinov2, "mlp_ratio", 1e9), invalid, {"[mlp_ratio]"});
    check_refused(with(kDinov2, "patch_size", 29), invalid, {"[image_size]", "0"});
    check_refused(with(kDinov2, "architectures", {"Dinov2Backbone"}), ErrorCode::kUnsupported,
                  {"[architectures]", "Dinov2Backbone"});
    const Json registers = with(kDinov2, "model_type", "dinov2_with_registers");
    for (const int64_t count : {int64_t{-1}, int64_t{1} << 40}) {
      check_refused(with(registers, "num_register_tokens", count), invalid,
                    {"[num_register_tokens]", std::to_string(count)});
    }
  }

  TEST_CASE("dinov2: a missing scale of a branch is named, and too small a picture is refused") {
    ChangedModel model("dinov2-classes");
    model.check_resolves();
    model.tensors.erase("dinov2.encoder.layer.1.layer_scale2.lambda1");
    model.check_refused("dinov2.encoder.layer.1.layer_scale2.lambda1");
    const GoldenGraphs graphs = golden_graphs("dinov2-bare");
    CHECK(row_of(graphs, "encoder.0.self.out")->row_scale ==
          "encoder.layer.0.layer_scale1.lambda1");
  }

  TEST_CASE("positions of an unchanged grid stay, and those of constant ones are constant") {
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(i * i));
    const GridSize grid = {3, 2};
    for (const PositionFilter filter :
         {PositionFilter::kBicubic, PositionFilter::kBicubicAntialias}) {
      const std::vector<float> same = resized_positions(values, grid, grid, 2, filter);
      REQUIRE(same.size() == values.size());
      for (size_t i = 0; i < values.size(); ++i) CHECK(same[i] == doctest::Approx(values[i]));
      const std::vector<float> ones(12, 1.5f);
      for (const GridSize& to : {GridSize{1, 1}, GridSize{7, 1}, GridSize{2, 9}}) {
        const std::vector<float> resized = resized_positions(ones, grid, to, 2, filter);
        REQUIRE(resized.size() == static_cast<size_t>(2 * to.count()));
        for (const float value : resized) CHECK(value == doctest::Approx(1.5));
      }
    }
  }
}

}  // namespace vkformer::testing
