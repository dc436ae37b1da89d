#include <bit>

#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kPage = {{"model_type", "layoutlmv3"},
                    {"hidden_size", 24},
                    {"num_hidden_layers", 2},
                    {"num_attention_heads", 3},
                    {"intermediate_size", 48},
                    {"vocab_size", 33},
                    {"max_position_embeddings", 32},
                    {"max_2d_position_embeddings", 10},
                    {"coordinate_size", 4},
                    {"shape_size", 4},
                    {"input_size", 8},
                    {"patch_size", 4}};

Result<ForwardInputs> read_page(Json config, const TensorMap& more) {
  config["has_relative_attention_bias"] = false;  // its table is read from a checkpoint
  const auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  TensorMap inputs{{"input_ids", Tensor::from_ints({1, 2}, {5, 6})},
                   {"attention_mask", Tensor::from_ints({1, 2}, {1, 0})}};
  inputs.insert(more.begin(), more.end());
  return read_forward_inputs(**family, inputs);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("layoutlmv3: facts, and what stands in for missing keys") {
    const ModelFacts facts = facts_of(kPage);
    CHECK(facts.family == "layoutlmv3");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.max_source == 30);
    CHECK(facts.grid.height == 8);
    const ModelFacts base = facts_of({{"model_type", "layoutlmv3"}});
    CHECK(base.source_vocab == 50265);
    CHECK(base.grid.width == 224);
    check_sizes(kPage,
                {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                 "vocab_size", "coordinate_size", "shape_size", "rel_pos_bins", "rel_2d_pos_bins"});
  }

  TEST_CASE("layoutlmv3: what it does not do is refused by name") {
    check_refused(with(kPage, "visual_embed", false), ErrorCode::kUnsupported, {"[visual_embed]"});
    check_refused(with(kPage, "text_embed", false), ErrorCode::kUnsupported, {"[text_embed]"});
    check_refused(with(kPage, "shape_size", 3), ErrorCode::kInvalidFile,
                  {"[shape_size]", "22 columns", "24"});
    check_refused(with(kPage, "architectures", Json::array({"LayoutLMv3ForMaskedLM"})),
                  ErrorCode::kUnsupported, {"'LayoutLMv3ForMaskedLM'"});
  }

  TEST_CASE("layoutlmv3: patches follow the tokens in the key mask") {
    const auto text = read_page(kPage, {});
    REQUIRE_MESSAGE(text.ok(), text.error().message);
    CHECK(text->words.at("key_mask") == std::vector<uint32_t>{1});
    CHECK(text->shape.height == 0);
    const auto page =
        read_page(kPage, {{"pixel_values", Tensor::zeros(DType::kF32, {1, 3, 8, 8})}});
    REQUIRE_MESSAGE(page.ok(), page.error().message);
    // Token 0, not token 1, the class token and four patches.
    CHECK(page->words.at("key_mask") == std::vector<uint32_t>{0b1111101});
    CHECK(page->shape.height == 8);
    const auto large =
        read_page(kPage, {{"pixel_values", Tensor::zeros(DType::kF32, {1, 3, 8, 12})}});
    REQUIRE_FALSE(large.ok());
    CHECK(large.error().message.find("(1, 3, 8, 8)") != std::string::npos);
  }

  TEST_CASE("layoutlmv3: boxes that are inside out have size 0") {
    const auto read =
        read_page(kPage, {{"bbox", Tensor::from_ints({1, 2, 4}, {5, 9, 1, 2, 0, 0, 9, 9})}});
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(read->words.at("box_sizes") == std::vector<uint32_t>{0, 10, 9, 19});
  }
}

}  // namespace vkformer::testing
