#include "model/blocks/named_decoder.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kFalcon = {{"model_type", "falcon"}, {"hidden_size", 24},
                      {"num_hidden_layers", 2}, {"num_attention_heads", 6},
                      {"ffn_hidden_size", 40},  {"max_position_embeddings", 64},
                      {"vocab_size", 50}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("falcon: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kFalcon);
    CHECK(facts.width == 24);
    CHECK(facts.decoder_heads == 6);
    CHECK(facts.max_target == 64);
    const ModelFacts base = facts_of({{"model_type", "falcon"}});
    CHECK(base.width == 4544);
    CHECK(base.decoder_heads == 71);
    CHECK(base.target_vocab == 65024);
    CHECK(facts_of(with(kFalcon, "n_embed", 48)).width == 48);
  }

  TEST_CASE("falcon: hostile sizes and groups that do not divide the heads are refused") {
    check_sizes(kFalcon, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                          "ffn_hidden_size", "max_position_embeddings", "vocab_size"});
    const Json grouped = with(kFalcon, "new_decoder_architecture", true);
    CHECK(load_config(with(grouped, "num_kv_heads", 2)).ok());
    check_refused(with(grouped, "num_kv_heads", 4), ErrorCode::kInvalidFile,
                  {"[num_kv_heads]", "4", "6"});
    check_refused(with(kFalcon, "architectures", {"FalconForTokenClassification"}),
                  ErrorCode::kUnsupported, {"[architectures]"});
  }

  TEST_CASE("falcon: rows of the merged projection come by groups of heads") {
    // Two groups of two queries, a key and a value, one column each.
    CHECK(grouped_qkv_order(4, 2, 1) == std::vector<uint32_t>{0, 1, 4, 5, 2, 6, 3, 7});
    // One group is in our order.
    CHECK(grouped_qkv_order(2, 1, 2) == std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  }

  TEST_CASE("falcon: branches have one norm or two, by tensors of their own names") {
    CHECK(row_of(golden_graphs("falcon-one-norm"), "decoder.0.ffn.norm") == nullptr);
    CHECK(row_of(golden_graphs("falcon-slopes"), "decoder.0.ffn.norm") != nullptr);
    ChangedModel model("falcon-one-norm");
    model.config["num_ln_in_parallel_attn"] = 2;
    model.check_refused("transformer.h.0.ln_attn.weight");
  }
}

}  // namespace vkformer::testing
