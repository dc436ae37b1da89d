#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kGptNeo = {
    {"model_type", "gpt_neo"},
    {"hidden_size", 24},
    {"num_layers", 3},
    {"num_heads", 3},
    {"max_position_embeddings", 32},
    {"vocab_size", 60},
    {"window_size", 4},
    {"attention_types", Json::parse(R"([[["global", "local"], 1], [["local"], 1]])")}};

Json typed(const char* text) {
  return with(kGptNeo, "attention_types", Json::parse(text));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gpt_neo: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kGptNeo);
    CHECK(facts.family == "gpt_neo");
    CHECK(facts.kind == ModelKind::kDecoder);
    CHECK(facts.decoder_layers == 3);
    CHECK(facts.max_target == 32);
    const ModelFacts base = facts_of({{"model_type", "gpt_neo"}});
    CHECK(base.width == 2048);
    CHECK(base.decoder_layers == 24);
    CHECK(base.decoder_heads == 16);
  }

  TEST_CASE("gpt_neo: hostile sizes are refused by key and value") {
    check_sizes(kGptNeo, {"hidden_size", "num_layers", "num_heads", "max_position_embeddings",
                          "vocab_size", "intermediate_size", "window_size"});
  }

  TEST_CASE("gpt_neo: attention types must be known and as many as layers") {
    CHECK(load_config(typed(R"([[["global", "local", "local"], 1]])")).ok());
    CHECK(load_config(typed(R"([[["global"], 3], [["local"], 0], [[], 9]])")).ok());
    check_refused(typed(R"([[["global"], 2]])"), ErrorCode::kInvalidFile,
                  {"[attention_types]", "2", "3"});
    check_refused(typed(R"([[["global", "sparse"], 1], [["local"], 1]])"), ErrorCode::kUnsupported,
                  {"[attention_types]", "sparse"});
    for (const char* hostile :
         {R"([[["global"], 4611686018427387904]])", R"([[["global"], -1]])", R"([["global"]])",
          R"([[["global"], 1, 2]])", R"([[[1], 3]])", R"({"global": 3})", R"("global")",
          R"([[["global"], 1000], [["local"], 1000]])"}) {
      check_refused(typed(hostile), ErrorCode::kInvalidFile, {"attention_types"});
    }
    Json listed = kGptNeo;
    listed.erase("attention_types");
    listed["attention_layers"] = {"global", "local", "global"};
    CHECK(load_config(listed).ok());
    listed["attention_layers"] = {"global"};
    check_refused(listed, ErrorCode::kInvalidFile, {"1", "3"});
  }

  TEST_CASE("gpt_neo: heads other than the language head are refused as unsupported") {
    check_refused(with(kGptNeo, "architectures", {"GPTNeoForTokenClassification"}),
                  ErrorCode::kUnsupported, {"GPTNeoForTokenClassification"});
  }

  TEST_CASE("gpt_neo: weights resolve, and queries, keys and values have no bias") {
    ChangedModel model("gpt_neo-local");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    CHECK(row_of(*resolved, "decoder.1.self.qkv")->biases.empty());
    CHECK_FALSE(row_of(*resolved, "decoder.1.self.out")->biases.empty());
    CHECK(output_shape(*resolved, "logits", 2, 5) == Shape{2, 5, 66});
    const Tensor spare = model.tensors.at("transformer.ln_f.bias");
    model.tensors.emplace("transformer.h.0.attn.attention.bias", spare);
    model.tensors.emplace("transformer.h.0.attn.attention.masked_bias", spare);
    model.check_resolves();
    model.rename("transformer.", "");
    model.check_resolves();
  }
}

}  // namespace vkformer::testing
