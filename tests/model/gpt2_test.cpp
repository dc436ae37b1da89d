#include "model/gpt2.h"

#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kGpt2 = {{"model_type", "gpt2"}, {"n_embd", 24},      {"n_layer", 2},
                    {"n_head", 3},          {"n_positions", 32}, {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gpt2: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kGpt2);
    CHECK(facts.family == "gpt2");
    CHECK(facts.architecture == "GPT2LMHeadModel");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.width == 24);
    CHECK(facts.decoder_heads == 3);
    CHECK(facts.max_target == 32);
    CHECK(facts.prompts == ModelFacts::Prompts::kRounded);
    const ModelFacts base = facts_of({{"model_type", "gpt2"}});
    CHECK(base.width == 768);
    CHECK(base.decoder_layers == 12);
    CHECK(base.target_vocab == 50257);
    CHECK(base.max_source == 1024);
    // The names that other families have for the same sizes.
    const ModelFacts renamed = facts_of({{"model_type", "gpt2"},
                                         {"hidden_size", 36},
                                         {"num_hidden_layers", 5},
                                         {"num_attention_heads", 4},
                                         {"max_position_embeddings", 7}});
    CHECK(renamed.width == 36);
    CHECK(renamed.decoder_layers == 5);
    CHECK(renamed.decoder_heads == 4);
    CHECK(renamed.max_source == 7);
  }

  TEST_CASE("gpt2: hostile sizes are refused by key and value") {
    check_sizes(kGpt2, {"n_embd", "n_layer", "n_head", "n_positions", "vocab_size", "n_inner"});
    check_refused(with(kGpt2, "n_head", 5), ErrorCode::kInvalidFile, {"24", "5 heads"});
  }

  TEST_CASE("gpt2: what the family does not do is refused as unsupported") {
    check_refused(with(kGpt2, "add_cross_attention", true), ErrorCode::kUnsupported,
                  {"[add_cross_attention]"});
    check_refused(with(kGpt2, "architectures", {"GPT2DoubleHeadsModel"}), ErrorCode::kUnsupported,
                  {"GPT2DoubleHeadsModel"});
    const auto activation = load_config(with(kGpt2, "activation_function", "mish"));
    REQUIRE_FALSE(activation.ok());
    CHECK(test::contains(activation.error().message, "mish"));
  }

  TEST_CASE("gpt2: weights resolve tied and untied, without prefix and with old masks") {
    ChangedModel model("gpt2-base");
    model.check_resolves();
    const auto tied = model.resolve();
    CHECK(row_of(*tied, "embed") == nullptr);
    const WeightRow* qkv = row_of(*tied, "decoder.0.self.qkv");
    REQUIRE(qkv != nullptr);
    CHECK(qkv->axes == WeightRow::Axes::kInOut);
    CHECK(row_of(*tied, "head")->sources.front() == "transformer.wte.weight");
    model.tensors.emplace("transformer.h.0.attn.bias", model.tensors.at("transformer.wpe.weight"));
    model.tensors.emplace("transformer.h.1.attn.masked_bias",
                          model.tensors.at("transformer.ln_f.bias"));
    model.check_resolves();
    model.rename("transformer.", "");
    model.check_resolves();
    model.tensors.emplace("lm_head.weight", model.tensors.at("wte.weight"));
    const auto untied = model.resolve();
    REQUIRE_MESSAGE(untied.ok(), untied.error().message);
    CHECK(row_of(*untied, "head")->sources.front() == "lm_head.weight");
    CHECK(row_of(*untied, "embed")->sources.front() == "wte.weight");
    model.tensors.erase("lm_head.weight");
    model.config["tie_word_embeddings"] = false;
    model.check_refused("lm_head.weight");
    model.tensors.erase("wpe.weight");
    model.config["tie_word_embeddings"] = true;
    model.check_refused("wpe.weight");
  }

  TEST_CASE("gpt2: graphs have the outputs they promise") {
    const auto model = ChangedModel("gpt2-base").resolve();
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(output_shape(*model, "logits", 2, 5) == Shape{2, 5, 80});
    CHECK(output_shape(*model, "hidden_states.1", 2, 5) == Shape{2, 5, 32});
    CHECK(output_shape(*model, "attentions.0", 2, 5) == Shape{2, 4, 5, 5});
    ChangedModel bare("gpt2-base");
    bare.config["architectures"] = {"GPT2Model"};
    const auto stack = bare.resolve();
    REQUIRE_MESSAGE(stack.ok(), stack.error().message);
    CHECK(output_shape(*stack, "logits", 2, 5).empty());
    CHECK(output_shape(*stack, "last_hidden_state", 2, 5) == Shape{2, 5, 32});
    Graph graph;
    ModelBuilder builder(graph, stack->weights);
    const auto step = stack->family->build_step(builder, {.batch = 1, .beams = 1, .capacity = 8});
    REQUIRE_FALSE(step.ok());
    CHECK(step.error().code == ErrorCode::kUnsupported);
  }
}

}  // namespace vkformer::testing
