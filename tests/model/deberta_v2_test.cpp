#include "model/blocks/disentangled_attention.h"
#include "model/encoder_cases.h"
#include "ops/attention_step.h"

namespace vkformer::testing {
namespace {

const Json kDeberta = {
    {"model_type", "deberta-v2"},    {"hidden_size", 24},
    {"num_hidden_layers", 2},        {"num_attention_heads", 3},
    {"intermediate_size", 48},       {"vocab_size", 60},
    {"max_position_embeddings", 32}, {"relative_attention", true},
    {"position_buckets", 6},         {"pos_att_type", Json::array({"p2c", "c2p"})},
    {"share_att_key", true},         {"position_biased_input", false}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("deberta-v2: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kDeberta);
    CHECK(facts.family == "deberta-v2");
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kCounted);
    CHECK(facts.source_tokens.types == 0);
    CHECK(facts.max_source == 32);
    const ModelFacts base = facts_of({{"model_type", "deberta-v2"}});
    CHECK(base.source_vocab == 128100);
    CHECK(base.width == 1536);
    CHECK(base.encoder_layers == 24);
    CHECK(base.max_source == 512);
    CHECK(facts_of(with(kDeberta, "type_vocab_size", 2)).source_tokens.types == 2);
  }

  TEST_CASE("deberta-v2: hostile sizes and unknown switches are refused") {
    check_sizes(kDeberta, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                           "intermediate_size", "vocab_size", "max_position_embeddings"});
    for (const char* key : {"embedding_size", "pooler_hidden_size", "attention_head_size"}) {
      check_refused(with(kDeberta, key, 12), ErrorCode::kUnsupported,
                    {"[" + std::string(key) + "]", "12"});
    }
    check_refused(with(kDeberta, "conv_kernel_size", 4), ErrorCode::kUnsupported,
                  {"[conv_kernel_size]", "4"});
    check_refused(with(with(kDeberta, "conv_kernel_size", 3), "conv_groups", 2),
                  ErrorCode::kUnsupported, {"[conv_groups]", "2"});
    check_refused(with(kDeberta, "type_vocab_size", -1), ErrorCode::kInvalidFile,
                  {"[type_vocab_size]", "-1"});
    check_refused(with(kDeberta, "position_buckets", 1), ErrorCode::kInvalidFile,
                  {"[position_buckets]", "is 1 and"});
    check_refused(with(kDeberta, "max_relative_positions", 4), ErrorCode::kInvalidFile,
                  {"[position_buckets]", "[max_relative_positions] 4"});
    check_refused(with(kDeberta, "max_relative_positions", int64_t{1} << 40),
                  ErrorCode::kInvalidFile, {"[max_relative_positions]"});
    check_refused(with(kDeberta, "architectures", Json::array({"DebertaV2ForMultipleChoice"})),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE(
      "deberta-v2: distances have rows of their own, then by logarithm, then share the last") {
    const DistanceRowsConfig plain{.span = 5, .farthest = 5};
    CHECK(distance_row(plain, 0) == 5);
    CHECK(distance_row(plain, 4) == 9);
    CHECK(distance_row(plain, 5) == 9);
    CHECK(distance_row(plain, -5) == 0);
    CHECK(distance_row(plain, -600) == 0);
    // microsoft/deberta-v3-base: 256 buckets for 512 positions.
    // Buckets whose formula divides by zero or has no logarithm: refused, and in the table all the
    // same.
    for (const DistanceRowsConfig& bad :
         {DistanceRowsConfig{.span = 4, .buckets = 4, .farthest = 3},
          DistanceRowsConfig{.span = 1, .buckets = 1, .farthest = 9},
          DistanceRowsConfig{.span = 4, .buckets = 4, .farthest = 1}}) {
      CHECK_FALSE(check_distance_rows(bad, 9).ok());
      for (int64_t d = -9; d <= 9; ++d) {
        CHECK(distance_row(bad, d) >= 0);
        CHECK(distance_row(bad, d) < 2 * bad.span);
      }
    }

    const DistanceRowsConfig v3{.span = 256, .buckets = 256, .farthest = 512};
    for (int64_t d = -128; d <= 128; ++d) CHECK(distance_row(v3, d) == 256 + d);
    // 128 + ceil(127 ln(200 / 128) / ln(511 / 128)) = 128 + ceil(40.94)
    CHECK(distance_row(v3, 200) == 256 + 169);
    CHECK(distance_row(v3, -200) == 256 - 169);
    CHECK(distance_row(v3, 511) == 511);
    CHECK(distance_row(v3, -511) == 1);
    CHECK(distance_row(v3, 5000) == 511);
    CHECK(distance_row(v3, -5000) == 0);
  }

  TEST_CASE("deberta-v2: graphs have the outputs of their heads") {
    const GoldenGraphs bare = golden_graphs("deberta_v2-bare");
    CHECK(output_shape(bare, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(bare, "pooler_output", 2, 7).empty());
    CHECK(row_of(bare, "positions") == nullptr);
    CHECK(row_of(bare, "encoder.positions")->rows == 8);
    CHECK(row_of(bare, "encoder.positions.norm") != nullptr);
    CHECK(row_of(bare, "encoder.0.positions.key") == nullptr);
    const GoldenGraphs masked = golden_graphs("deberta_v2-masked");
    CHECK(output_shape(masked, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(masked, "encoder.0.positions.query") != nullptr);
    CHECK(row_of(masked, "encoder.0.positions.key") == nullptr);
    CHECK(row_of(masked, "encoder.conv")->width == 48);
    CHECK(row_of(masked, "positions")->rows == 34);
    CHECK(output_shape(golden_graphs("deberta_v2-newer"), "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(output_shape(golden_graphs("deberta_v2-classes"), "logits", 2, 7) == Shape{2, 3});
  }

  TEST_CASE("deberta-v2: products of keys with positions are made before where they are few") {
    const GoldenGraphs model = golden_graphs("deberta_v2-masked");
    const auto kinds = [&](int64_t batch) {
      const Graph graph = model.forward({.batch = batch, .source = 32}, {});
      std::vector<uint32_t> found;
      for (const Node& node : graph.nodes()) {
        if (node.op != static_cast<uint16_t>(OpId::k_attention)) continue;
        found.push_back(
            std::get<AttentionAttrs>(attrs_of<AttentionNodeAttrs>(node)).relative.kinds);
      }
      return found;
    };
    // 32000 x 2 heads x 32 tokens x 11 distances take more than 64 MiB.
    const uint32_t made = VKF_RELATIVE_KEYS | VKF_RELATIVE_PRODUCTS;
    const uint32_t inside = VKF_RELATIVE_KEYS | VKF_RELATIVE_QUERIES;
    CHECK(kinds(2) == std::vector<uint32_t>{made, made});
    CHECK(kinds(32000) == std::vector<uint32_t>{inside, inside});
  }

  TEST_CASE("deberta-v2: the tensors that a switch asks for are named where they are missing") {
    ChangedModel model("deberta_v2-newer");
    model.check_resolves();
    model.config["norm_rel_ebd"] = "none|layer_norm";
    model.check_refused("encoder.LayerNorm");
    model.config["norm_rel_ebd"] = "none";
    model.tensors.erase("deberta.encoder.layer.1.attention.self.pos_query_proj.bias");
    model.check_refused("pos_query_proj.bias");
    model.config["share_att_key"] = true;
    model.check_resolves();
  }
}

}  // namespace vkformer::testing
