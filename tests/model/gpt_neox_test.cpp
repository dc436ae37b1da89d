#include "model/blocks/named_decoder.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kNeox = {{"model_type", "gpt_neox"}, {"hidden_size", 24},
                    {"num_hidden_layers", 2},   {"num_attention_heads", 3},
                    {"intermediate_size", 48},  {"max_position_embeddings", 32},
                    {"vocab_size", 60}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gpt_neox: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kNeox);
    CHECK(facts.family == "gpt_neox");
    CHECK(facts.architecture == "GPTNeoXForCausalLM");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.max_target == 32);
    const ModelFacts base = facts_of({{"model_type", "gpt_neox"}});
    CHECK(base.width == 6144);
    CHECK(base.decoder_layers == 44);
    CHECK(base.target_vocab == 50432);
  }

  TEST_CASE("gpt_neox: hostile sizes are refused by key and value") {
    check_sizes(kNeox, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                        "intermediate_size", "max_position_embeddings", "vocab_size"});
  }

  TEST_CASE("gpt_neox: the part of a head that turns is read in both spellings") {
    CHECK(load_config(with(kNeox, "rotary_pct", 0.5)).ok());
    CHECK(load_config(with(kNeox, "rotary_pct", 0.0)).ok());
    CHECK(load_config(with(kNeox, "rope_parameters", {{"partial_rotary_factor", 1.0}})).ok());
    for (double part : {-0.5, 1.5}) {
      check_refused(with(kNeox, "rotary_pct", part), ErrorCode::kInvalidFile,
                    {"[partial_rotary_factor]"});
    }
    // A head of 8 columns of which 3 turn.
    check_refused(with(kNeox, "rotary_pct", 0.4), ErrorCode::kInvalidFile, {"3", "even"});
    check_refused(with(kNeox, "rotary_emb_base", 0), ErrorCode::kInvalidFile, {"theta"});
  }

  TEST_CASE("gpt_neox: heads other than the language head are refused as unsupported") {
    check_refused(with(kNeox, "architectures", {"GPTNeoXForTokenClassification"}),
                  ErrorCode::kUnsupported, {"GPTNeoXForTokenClassification"});
  }

  TEST_CASE("gpt_neox: projections grouped by head become [q | k | v]") {
    CHECK(grouped_qkv_order(2, 2, 2) ==
          std::vector<uint32_t>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
    ChangedModel model("gptneox-parallel");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    CHECK(row_of(*resolved, "decoder.0.self.qkv")->row_order == grouped_qkv_order(4, 4, 8));
    CHECK(row_of(*resolved, "decoder.0.self.norm")->sources.front() ==
          "gpt_neox.layers.0.input_layernorm.weight");
    CHECK(output_shape(*resolved, "logits", 2, 5) == Shape{2, 5, 70});
    const Tensor spare = model.tensors.at("gpt_neox.final_layer_norm.bias");
    for (const char* buffer : {"bias", "masked_bias", "rotary_emb.inv_freq"}) {
      model.tensors.emplace("gpt_neox.layers.0.attention." + std::string(buffer), spare);
    }
    model.check_resolves();
    model.config["attention_bias"] = false;
    model.check_refused(".bias");
    model.config["attention_bias"] = true;
    model.tensors.erase("embed_out.weight");
    model.check_refused("embed_out.weight");
  }
}

}  // namespace vkformer::testing
