#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kXglm = {{"model_type", "xglm"}, {"d_model", 24}, {"num_layers", 2},
                    {"attention_heads", 3}, {"ffn_dim", 40}, {"max_position_embeddings", 64},
                    {"vocab_size", 50}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("xglm: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kXglm);
    CHECK(facts.width == 24);
    CHECK(facts.max_target == 64);
    const ModelFacts base = facts_of({{"model_type", "xglm"}});
    CHECK(base.width == 1024);
    CHECK(base.decoder_layers == 24);
    CHECK(base.target_vocab == 256008);
    check_sizes(kXglm, {"d_model", "num_layers", "attention_heads", "ffn_dim",
                        "max_position_embeddings", "vocab_size"});
    check_refused(with(kXglm, "add_cross_attention", true), ErrorCode::kUnsupported,
                  {"[add_cross_attention]"});
  }

  TEST_CASE("xglm: the row of positions that padding would have is zero") {
    const GoldenGraphs model = golden_graphs("xglm-unscaled");
    const WeightRow* positions = row_of(model, "positions");
    REQUIRE(positions != nullptr);
    CHECK(positions->rows == 42);
    for (size_t d = 0; d < 24; ++d) CHECK(positions->computed[24 + d] == 0.0f);
    CHECK(positions->computed[12] == 1.0f);  // cos 0
    ChangedModel changed("xglm-unscaled");
    changed.check_resolves();
    changed.tensors.erase("model.layer_norm.bias");
    changed.check_refused("model.layer_norm.bias");
  }
}

}  // namespace vkformer::testing
