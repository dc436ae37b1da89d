#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kLayout = {{"model_type", "layoutlm"},      {"hidden_size", 24},
                      {"num_hidden_layers", 2},        {"num_attention_heads", 3},
                      {"intermediate_size", 48},       {"vocab_size", 33},
                      {"max_position_embeddings", 32}, {"max_2d_position_embeddings", 10}};

Result<ForwardInputs> read_page(const std::vector<int64_t>& boxes, Shape shape) {
  const auto family = load_config(kLayout);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  const TensorMap inputs{{"input_ids", Tensor::from_ints({1, 2}, {5, 6})},
                         {"bbox", Tensor::from_ints(std::move(shape), boxes)}};
  return read_forward_inputs(**family, inputs);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("layoutlm: facts, and what stands in for missing keys") {
    const ModelFacts facts = facts_of(kLayout);
    CHECK(facts.family == "layoutlm");
    CHECK(facts.max_source == 32);
    CHECK(facts.source_tokens.types == 2);
    const ModelFacts base = facts_of({{"model_type", "layoutlm"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_layers == 12);
    CHECK(base.source_vocab == 30522);
    check_sizes(kLayout, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "intermediate_size", "vocab_size", "max_2d_position_embeddings"});
  }

  TEST_CASE("layoutlm: boxes become rows of their tables") {
    const auto read = read_page({1, 2, 4, 9, 0, 0, 0, 0}, {1, 2, 4});
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    // x's are rows 0 to 9, y's and widths 10 to 19.
    CHECK(read->words.at("box_corners") == std::vector<uint32_t>{1, 12, 4, 19, 0, 10, 0, 10});
    CHECK(read->words.at("box_sizes") == std::vector<uint32_t>{7, 13, 0, 10});
  }

  TEST_CASE("layoutlm: boxes outside the tables are refused by name and value") {
    const auto refused = [](const std::vector<int64_t>& boxes, Shape shape,
                            const std::vector<std::string>& parts) {
      const auto read = read_page(boxes, std::move(shape));
      REQUIRE_FALSE(read.ok());
      CHECK(read.error().code == ErrorCode::kInvalidArgument);
      for (const std::string& part : parts) {
        CHECK_MESSAGE(read.error().message.find(part) != std::string::npos, read.error().message);
      }
    };
    refused({1, 2, 10, 9, 0, 0, 0, 0}, {1, 2, 4}, {"[bbox]", "right is 10", "0 to 9"});
    refused({1, -1, 4, 9, 0, 0, 0, 0}, {1, 2, 4}, {"[bbox]", "top is -1"});
    refused({1, 9, 4, 2, 0, 0, 0, 0}, {1, 2, 4}, {"[bbox]", "height is -7"});
    refused({1, 2, 4, 9}, {1, 1, 4}, {"[bbox]", "(1, 1, 4)", "(1, 2, 4)"});
  }
}

}  // namespace vkformer::testing
