#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kNystromformer = {
    {"model_type", "nystromformer"}, {"hidden_size", 12},       {"num_hidden_layers", 2},
    {"num_attention_heads", 3},      {"intermediate_size", 20}, {"vocab_size", 50},
    {"max_position_embeddings", 40}, {"num_landmarks", 6},      {"segment_means_seq_len", 24}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("nystromformer: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kNystromformer);
    CHECK(facts.family == "nystromformer");
    CHECK(facts.width == 12);
    CHECK(facts.source_tokens.types == 2);
    // As many tokens as are cut into landmarks; any number where every token is one.
    CHECK(facts.max_source == 24);
    CHECK(facts_of(with(kNystromformer, "num_landmarks", 24)).max_source == 40);
    const ModelFacts base = facts_of({{"model_type", "nystromformer"}});
    CHECK(base.width == 768);
    CHECK(base.source_vocab == 30000);
    CHECK(base.max_source == 510);
    const Json masked =
        with(kNystromformer, "architectures", Json::array({"NystromformerForMaskedLM"}));
    CHECK(facts_of(masked).head == HeadKind::kMasked);
  }

  TEST_CASE("nystromformer: hostile sizes and impossible settings are refused with their numbers") {
    check_sizes(kNystromformer, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                 "intermediate_size", "vocab_size", "max_position_embeddings",
                                 "num_landmarks", "segment_means_seq_len"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kNystromformer, "num_landmarks", 5), invalid,
                  {"[num_landmarks]", "5", "24"});
    check_refused(with(kNystromformer, "segment_means_seq_len", 48), invalid,
                  {"[segment_means_seq_len]", "48", "40"});
    for (int kernel : {0, -1, 4, 1 << 20}) {
      check_refused(with(kNystromformer, "conv_kernel_size", kernel), invalid,
                    {"[conv_kernel_size]", std::to_string(kernel), "odd"});
    }
    check_refused(with(kNystromformer, "num_attention_heads", 5), invalid, {"12", "5"});
    check_refused(with(kNystromformer, "pad_token_id", 50), invalid, {"[pad_token_id]", "50"});
    check_refused(
        with(kNystromformer, "architectures", Json::array({"NystromformerForMultipleChoice"})),
        ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE(
      "nystromformer: shorter rows are padded to the landmarks' length, longer ones refused") {
    const auto family = load_config(kNystromformer);
    REQUIRE(family.ok());
    ForwardInputs inputs;
    inputs.shape = {.batch = 1, .source = 20};
    inputs.words["input_ids"].assign(20, 5u);
    inputs.words["token_type_ids"].assign(20, 1u);
    inputs.words["position_ids"].assign(20, 3u);
    inputs.positions = ForwardTaps::Tap::kOn;
    inputs.words["key_mask"] = {0x000ffff0u};
    REQUIRE((*family)->read_inputs({}, inputs).ok());
    CHECK(inputs.shape.source == 20);
    CHECK(inputs.words.at("input_ids").size() == 24);
    CHECK(inputs.words.at("input_ids")[20] == 1);
    CHECK(inputs.words.at("token_type_ids")[20] == 0);
    // Row 3 of the table is the second position.
    CHECK(inputs.words.at("position_ids")[0] == 1);
    CHECK(inputs.words.at("position_ids")[20] == 20);
    CHECK(inputs.words.at("key_mask") == std::vector<uint32_t>{0x000ffff0u});
    inputs.shape.source = 25;
    const Status refused = (*family)->read_inputs({}, inputs);
    REQUIRE_FALSE(refused.ok());
    CHECK(test::contains(refused.error().message, "25 tokens"));
    CHECK(test::contains(refused.error().message, "24 tokens"));
  }

  TEST_CASE("nystromformer: maps have a column for each landmark, and their own lengths") {
    const GoldenGraphs model = golden_graphs("nystromformer-short");
    CHECK(output_shape(model, "attentions.1", 2, 19) == Shape{2, 2, 19, 8});
    CHECK(output_shape(model, "hidden_states.1", 2, 19) == Shape{2, 19, 12});
    CHECK(output_shape(model, "logits", 2, 19) == Shape{2, 19, 31});
    const GoldenGraphs plain = golden_graphs("nystromformer-tokens");
    CHECK(output_shape(plain, "attentions.0", 2, 13) == Shape{2, 2, 13, 13});
  }

  TEST_CASE("nystromformer: a convolution is in the file, or is not stated") {
    const std::string conv = "nystromformer.encoder.layer.0.attention.self.conv.weight";
    ChangedModel changed("nystromformer-spans");
    changed.check_resolves();
    REQUIRE(changed.tensors.erase(conv) == 1);
    changed.check_refused("conv.weight");
    changed.config["conv_kernel_size"] = nullptr;
    changed.check_resolves();
    ChangedModel wide("nystromformer-spans");
    wide.config["conv_kernel_size"] = 3;
    wide.check_refused("conv.weight");
  }
}

}  // namespace vkformer::testing
