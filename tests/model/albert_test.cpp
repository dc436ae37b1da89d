#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kAlbert = {
    {"model_type", "albert"},  {"hidden_size", 24},        {"embedding_size", 12},
    {"num_hidden_layers", 6},  {"num_attention_heads", 3}, {"num_hidden_groups", 2},
    {"intermediate_size", 48}, {"inner_group_num", 2},     {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("albert: every run of a shared layer counts as a layer") {
    CHECK(facts_of(kAlbert).encoder_layers == 12);
    CHECK(facts_of(with(kAlbert, "inner_group_num", 1)).encoder_layers == 6);
    const ModelFacts base = facts_of({{"model_type", "albert"}});
    CHECK(base.width == 4096);
    CHECK(base.encoder_heads == 64);
    CHECK(base.source_vocab == 30000);
  }

  TEST_CASE("albert: hostile sizes are refused, and so are too many layers in all") {
    check_sizes(kAlbert, {"hidden_size", "embedding_size", "num_hidden_layers", "num_hidden_groups",
                          "inner_group_num", "num_attention_heads", "intermediate_size"});
    check_refused(with(kAlbert, "inner_group_num", 200), ErrorCode::kInvalidFile,
                  {"[inner_group_num]", "200", "1024"});
    check_refused(with(with(kAlbert, "inner_group_num", 100), "num_hidden_groups", 11),
                  ErrorCode::kInvalidFile, {"[inner_group_num]", "11 groups"});
    check_refused(with(kAlbert, "position_embedding_type", "relative_key_query"),
                  ErrorCode::kUnsupported, {"[position_embedding_type]"});
  }

  TEST_CASE("albert: layers read the weights of their group, which are there once") {
    const GoldenGraphs groups = golden_graphs("albert-groups");
    CHECK(groups.family->facts().encoder_layers == 8);
    CHECK(row_of(groups, "encoder.3.ffn.up") != nullptr);
    CHECK(row_of(groups, "encoder.4.ffn.up") == nullptr);
    CHECK(row_of(groups, "encoder.2.ffn.up")->sources ==
          std::vector<std::string>{"encoder.albert_layer_groups.1.albert_layers.0.ffn.weight"});
    CHECK(output_shape(groups, "attentions.7", 2, 7) == Shape{2, 3, 7, 7});
    // Four steps over two groups of two: 0 1, 0 1, 2 3, 2 3.
    const Graph graph = groups.forward({.batch = 1, .source = 3});
    const std::string dump = graph.dump();
    const auto count = [&](const std::string& part) {
      size_t n = 0;
      for (size_t at = dump.find(part); at != std::string::npos; at = dump.find(part, at + 1)) ++n;
      return n;
    };
    CHECK(count("encoder.0.ffn.up") > 1);
    CHECK(count("encoder.0.ffn.up") == count("encoder.3.ffn.up"));
    CHECK(output_shape(golden_graphs("albert-base"), "pooler_output", 2, 7) == Shape{2, 32});
  }

  TEST_CASE("albert: a missing group is refused by tensor") {
    ChangedModel model("albert-groups");
    model.config["num_hidden_groups"] = 3;
    model.check_refused("albert_layer_groups.2.");
    model.config["num_hidden_groups"] = 1;
    model.check_refused("albert_layer_groups.1.");
  }
}

}  // namespace vkformer::testing
