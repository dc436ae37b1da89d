#include "model/blocks/named_decoder.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kBloom = {{"model_type", "bloom"},
                     {"hidden_size", 24},
                     {"n_layer", 3},
                     {"n_head", 6},
                     {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("bloom: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kBloom);
    CHECK(facts.family == "bloom");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.width == 24);
    CHECK(facts.decoder_layers == 3);
    CHECK(facts.decoder_heads == 6);
    CHECK(facts.max_target == 131072);
    const ModelFacts base = facts_of({{"model_type", "bloom"}});
    CHECK(base.width == 64);
    CHECK(base.decoder_heads == 8);
    CHECK(base.target_vocab == 250880);
    const ModelFacts older = facts_of({{"model_type", "bloom"},
                                       {"n_embed", 36},
                                       {"num_hidden_layers", 4},
                                       {"num_attention_heads", 9}});
    CHECK(older.width == 36);
    CHECK(older.decoder_layers == 4);
    CHECK(older.decoder_heads == 9);
  }

  TEST_CASE("bloom: hostile sizes and other heads are refused") {
    check_sizes(kBloom, {"hidden_size", "n_layer", "n_head", "vocab_size"});
    check_refused(with(kBloom, "n_head", 5), ErrorCode::kInvalidFile, {"24", "5 heads"});
    check_refused(with(kBloom, "architectures", {"BloomForTokenClassification"}),
                  ErrorCode::kUnsupported, {"BloomForTokenClassification"});
  }

  TEST_CASE("bloom: weights resolve with and without prefix, regrouped by part") {
    ChangedModel model("bloom-alibi");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    CHECK(row_of(*resolved, "decoder.1.self.qkv")->row_order == grouped_qkv_order(4, 4, 8));
    CHECK(row_of(*resolved, "embed.norm") != nullptr);
    CHECK(output_shape(*resolved, "logits", 2, 5) == Shape{2, 5, 64});
    model.rename("transformer.", "");
    model.check_resolves();
    model.config["apply_residual_connection_post_layernorm"] = true;
    model.check_resolves();
    model.tensors.erase("word_embeddings_layernorm.weight");
    model.check_refused("word_embeddings_layernorm");
  }
}

}  // namespace vkformer::testing
