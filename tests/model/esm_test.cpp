#include <bit>

#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kEsm = {{"model_type", "esm"},     {"hidden_size", 24},
                   {"num_hidden_layers", 2},  {"num_attention_heads", 3},
                   {"intermediate_size", 48}, {"vocab_size", 33},
                   {"pad_token_id", 1},       {"max_position_embeddings", 32}};
const Json kEsm2 = with(kEsm, "position_embedding_type", "rotary");

// The scales of one row of ids under token dropout, with mask token 32.
std::vector<float> dropout_scales(const std::vector<int64_t>& ids,
                                  const std::vector<int64_t>& mask) {
  const auto family = load_config(with(with(kEsm2, "token_dropout", true), "mask_token_id", 32));
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  const auto tokens = static_cast<int64_t>(ids.size());
  const TensorMap inputs{{"input_ids", Tensor::from_ints({1, tokens}, ids)},
                         {"attention_mask", Tensor::from_ints({1, tokens}, mask)}};
  const auto read = read_forward_inputs(**family, inputs);
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  std::vector<float> scales;
  for (uint32_t word : read->words.at("token_dropout_scales")) {
    scales.push_back(std::bit_cast<float>(word));
  }
  return scales;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("esm: positions are a table after the pad token's, or rotary") {
    const ModelFacts facts = facts_of(kEsm);
    CHECK(facts.family == "esm");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromIds);
    CHECK(facts.source_tokens.types == 0);
    CHECK(facts.max_source == 30);
    const ModelFacts rotary = facts_of(kEsm2);
    CHECK(rotary.source_tokens.positions == TokenFacts::Positions::kCounted);
    CHECK(rotary.max_source == 32);
    const ModelFacts base =
        facts_of({{"model_type", "esm"}, {"vocab_size", 33}, {"pad_token_id", 1}});
    CHECK(base.encoder_layers == 12);
    CHECK(base.max_source == 1024);
  }

  TEST_CASE("esm: what the configuration must say, and what it must not") {
    check_sizes(kEsm, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                       "intermediate_size", "vocab_size"});
    check_refused({{"model_type", "esm"}, {"pad_token_id", 1}}, ErrorCode::kInvalidFile,
                  {"[vocab_size]"});
    check_refused({{"model_type", "esm"}, {"vocab_size", 33}}, ErrorCode::kInvalidFile,
                  {"[pad_token_id]"});
    check_refused(with(kEsm, "position_embedding_type", "relative_key"), ErrorCode::kUnsupported,
                  {"[position_embedding_type]", "'relative_key'", "'rotary'"});
    check_refused(with(kEsm, "is_folding_model", true), ErrorCode::kUnsupported,
                  {"[is_folding_model]"});
    check_refused(with(kEsm, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    check_refused(with(kEsm, "architectures", Json::array({"EsmForQuestionAnswering"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("esm: token dropout zeroes mask tokens and scales the others of their row") {
    // A quarter of the four kept tokens is masked.
    const std::vector<float> scales = dropout_scales({4, 32, 6, 7, 1}, {1, 1, 1, 1, 0});
    const float left = static_cast<float>(0.88 / 0.75);
    CHECK(scales == std::vector<float>{left, 0.0f, left, left, left});
    CHECK(dropout_scales({4, 5}, {1, 1}) == std::vector<float>{0.88f, 0.88f});
    CHECK(dropout_scales({32, 32}, {1, 1}) == std::vector<float>{0.0f, 0.0f});
    CHECK(dropout_scales({4, 32}, {0, 0}) == std::vector<float>{0.0f, 0.0f});
  }

  TEST_CASE("esm: graphs have the outputs of their heads") {
    const GoldenGraphs bare = golden_graphs("esm-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(bare, "pooler_output", 2, 7) == Shape{2, 16});
    CHECK(row_of(bare, "embedding.norm") == nullptr);
    CHECK(row_of(bare, "positions") == nullptr);
    CHECK(row_of(bare, "encoder.norm") != nullptr);
    const GoldenGraphs masked = golden_graphs("esm-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "embedding.norm") != nullptr);
    CHECK(row_of(masked, "words")->biases == std::vector<std::string>{"lm_head.bias"});
  }

  TEST_CASE("esm: rotary frequencies are those of the file, wherever it has them") {
    ChangedModel model("esm-bare");
    size_t stored = 0;
    std::string name;
    for (const auto& [tensor, values] : model.tensors) {
      if (tensor.ends_with("inv_freq")) name = tensor, ++stored;
    }
    REQUIRE(stored == 1);
    model.tensors[name] = Tensor::from_floats({3}, std::vector<float>(3, 1.0f));
    model.check_refused("inv_freq");
    model.tensors.erase(name);
    model.check_resolves();
    model.tensors["rotary_embeddings.inv_freq"] =
        Tensor::from_floats({4}, std::vector<float>(4, 1.0f));
    model.check_resolves();
  }
}

}  // namespace vkformer::testing
