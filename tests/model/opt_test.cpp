#include "model/blocks/named_decoder.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kOpt = {{"model_type", "opt"},      {"hidden_size", 24}, {"num_hidden_layers", 2},
                   {"num_attention_heads", 3}, {"ffn_dim", 30},     {"max_position_embeddings", 32},
                   {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("opt: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kOpt);
    CHECK(facts.family == "opt");
    CHECK(facts.architecture == "OPTForCausalLM");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.width == 24);
    CHECK(facts.decoder_layers == 2);
    CHECK(facts.decoder_heads == 3);
    CHECK(facts.max_target == 32);
    CHECK(facts.source_tokens.positions == TokenFacts::Positions::kFromMask);
    const ModelFacts base = facts_of({{"model_type", "opt"}});
    CHECK(base.width == 768);
    CHECK(base.decoder_layers == 12);
    CHECK(base.decoder_heads == 12);
    CHECK(base.target_vocab == 50272);
    CHECK(base.max_source == 2048);
  }

  TEST_CASE("opt: hostile sizes are refused by key and value") {
    check_sizes(kOpt, {"hidden_size", "num_hidden_layers", "num_attention_heads", "ffn_dim",
                       "max_position_embeddings", "vocab_size", "word_embed_proj_dim"});
    check_refused(with(kOpt, "num_attention_heads", 5), ErrorCode::kInvalidFile, {"24", "5 heads"});
  }

  TEST_CASE("opt: what the family does not do is refused as unsupported") {
    check_refused(with(kOpt, "layer_norm_elementwise_affine", false), ErrorCode::kUnsupported,
                  {"[layer_norm_elementwise_affine]"});
    check_refused(with(kOpt, "architectures", {"OPTForQuestionAnswering"}), ErrorCode::kUnsupported,
                  {"OPTForQuestionAnswering"});
  }

  TEST_CASE("opt: embeddings narrower than the layers have a projection on either side") {
    const ModelFacts facts = facts_of(with(kOpt, "word_embed_proj_dim", 16));
    CHECK(facts.width == 16);
    CHECK(facts_of(with(kOpt, "word_embed_proj_dim", 24)).width == 24);
    const GoldenGraphs model = golden_graphs("opt-projected");
    CHECK(output_shape(model, "last_hidden_state", 2, 7) == Shape{2, 7, 16});
    CHECK(output_shape(model, "logits", 2, 7) == Shape{2, 7, 40});
    CHECK(row_of(model, "embedding.projection")->rows == 24);
    CHECK(row_of(model, "decoder.projection")->rows == 16);
    ChangedModel changed("opt-projected");
    changed.tensors.erase("model.decoder.project_in.weight");
    changed.check_refused("project_in");
    ChangedModel same("opt-base");
    same.config["word_embed_proj_dim"] = 20;
    same.check_refused("embed_tokens");
  }

  TEST_CASE("opt: weights resolve tied and untied, bare and with a head, and with no final norm") {
    ChangedModel model("opt-base");
    model.check_resolves();
    const auto tied = model.resolve();
    REQUIRE_MESSAGE(tied.ok(), tied.error().message);
    CHECK(row_of(*tied, "embed") == nullptr);
    CHECK(row_of(*tied, "positions")->rows == 34);
    CHECK(row_of(*tied, "decoder.norm") != nullptr);
    model.tensors.emplace("lm_head.weight", model.tensors.at("model.decoder.embed_tokens.weight"));
    const auto untied = model.resolve();
    REQUIRE_MESSAGE(untied.ok(), untied.error().message);
    CHECK(row_of(*untied, "head")->sources.front() == "lm_head.weight");
    model.rename("model.decoder.", "decoder.");
    model.check_resolves();
    model.config["_remove_final_layer_norm"] = true;
    model.check_refused("decoder.final_layer_norm");
    model.tensors.erase("decoder.final_layer_norm.weight");
    model.tensors.erase("decoder.final_layer_norm.bias");
    model.check_resolves();
    model.tensors.erase("decoder.embed_positions.weight");
    model.check_refused("decoder.embed_positions.weight");
    ChangedModel plain("opt-bare");
    plain.check_resolves();
    plain.config["enable_bias"] = true;
    plain.check_refused("q_proj.bias");
  }
}

}  // namespace vkformer::testing
