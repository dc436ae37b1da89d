#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kWhisper = {{"model_type", "whisper"},
                       {"d_model", 24},
                       {"encoder_layers", 2},
                       {"decoder_layers", 3},
                       {"encoder_ffn_dim", 48},
                       {"decoder_ffn_dim", 40},
                       {"vocab_size", 60},
                       {"encoder_attention_heads", 3},
                       {"decoder_attention_heads", 2},
                       {"num_mel_bins", 10},
                       {"max_source_positions", 15},
                       {"max_target_positions", 32},
                       {"decoder_start_token_id", 3}};

Result<std::unique_ptr<ModelFamily>> load_with(const Json& generation) {
  const test::TempDir directory;
  directory.write("config.json", kWhisper.dump());
  directory.write("generation_config.json", generation.dump());
  return load_family(*make_directory_store(directory.path()));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("whisper: reads features of one size") {
    const ModelFacts facts = facts_of(kWhisper);
    CHECK(facts.source == SourceKind::kFeatures);
    CHECK(facts.grid.channels == 10);
    CHECK(facts.grid.width == 30);
    CHECK(facts.max_source == 15);
    CHECK(facts.max_target == 32);
    const ModelFacts defaults = facts_of({{"model_type", "whisper"}});
    CHECK(defaults.grid.channels == 80);
    CHECK(defaults.grid.width == 3000);
    CHECK(defaults.max_target == 448);
    CHECK(defaults.target_vocab == 51865);
  }

  TEST_CASE("whisper: hostile sizes and other heads are refused") {
    check_sizes(kWhisper, {"d_model", "encoder_layers", "decoder_layers", "vocab_size",
                           "num_mel_bins", "max_source_positions", "max_target_positions"});
    for (const char* head : {"WhisperForAudioClassification", "WhisperForCausalLM"}) {
      check_refused(with(kWhisper, "architectures", Json::array({head})), ErrorCode::kUnsupported,
                    {"[architectures]", head});
    }
  }

  TEST_CASE("whisper: prompts and their tokens come from generation_config.json") {
    const Json named = {{"lang_to_id", {{"<|en|>", 10}, {"<|de|>", 11}}},
                        {"task_to_id", {{"transcribe", 20}}},
                        {"no_timestamps_token_id", 30}};
    Json forced = named;
    forced["forced_decoder_ids"] = Json::array({{1, 10}, {2, 20}, {3, 30}});
    const auto family = load_with(forced);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const GenerationFacts& tokens = (*family)->generation();
    CHECK(tokens.decoder_prompt == std::vector<int64_t>{3, 10, 20, 30});
    CHECK(tokens.prompt_tokens ==
          std::map<std::string, int64_t>{
              {"<|de|>", 11}, {"<|en|>", 10}, {"notimestamps", 30}, {"transcribe", 20}});
    forced["forced_decoder_ids"] = Json::array({{1, nullptr}, {2, 20}});
    const auto open = load_with(forced);
    REQUIRE_MESSAGE(open.ok(), open.error().message);
    CHECK((*open)->generation().decoder_prompt == std::vector<int64_t>{3, -1, 20});
    forced["task"] = "transcribe";
    const auto chosen = load_with(forced);
    REQUIRE(chosen.ok());
    CHECK((*chosen)->generation().decoder_prompt.empty());
    for (const Json& bad : {Json::array({{2, 10}}), Json::array({{1, 10, 4}}), Json::array({{1}}),
                            Json("x"), Json::array({{1, "x"}})}) {
      CAPTURE(bad.dump());
      const auto refused = load_with({{"forced_decoder_ids", bad}});
      REQUIRE_FALSE(refused.ok());
      CHECK(test::contains(refused.error().message, "forced_decoder_ids"));
    }
    CHECK_FALSE(load_with({{"lang_to_id", {{"<|en|>", "ten"}}}}).ok());
  }

  TEST_CASE("whisper: keys have no bias, convolutions are matrices, the head is the embedding") {
    const GoldenGraphs model = golden_graphs("whisper-base");
    CHECK(row_of(model, "encoder.0.self.qkv")->biases[1].empty());
    CHECK(row_of(model, "decoder.1.cross.kv")->biases[0].empty());
    CHECK(row_of(model, "encoder.conv1")->width == 48);
    CHECK(row_of(model, "head")->sources ==
          std::vector<std::string>{"model.decoder.embed_tokens.weight"});
    const Graph forward = model.forward({.batch = 2, .target = 5, .height = 1, .width = 48});
    const auto shape_of = [&](const std::string& name) {
      const TensorId id = forward.find_external(name);
      REQUIRE_MESSAGE(id != kNoTensor, name);
      return forward.tensor(id).shape;
    };
    CHECK(shape_of("input_features") == Shape{2, 16, 48});
    CHECK(shape_of("encoder_last_hidden_state") == Shape{2, 24, 32});
    CHECK(shape_of("logits") == Shape{2, 5, 70});
    const Graph prompt = model.prompt({.batch = 1, .beams = 2, .capacity = 32, .prompt = 4});
    CHECK(prompt.find_external("cross_kv.1") != kNoTensor);
    CHECK(prompt.find_external("self_kv.1") != kNoTensor);
  }

  TEST_CASE("whisper: a head of its own and a bare model are taken by their names") {
    ChangedModel model("whisper-base");
    model.tensors["proj_out.weight"] = model.tensors.at("model.decoder.embed_tokens.weight");
    const auto own = model.resolve();
    REQUIRE_MESSAGE(own.ok(), own.error().message);
    CHECK(row_of(*own, "head")->sources == std::vector<std::string>{"proj_out.weight"});
    CHECK(row_of(*own, "decoder.embed") != nullptr);
    model.config["architectures"] = Json::array({"WhisperModel"});
    model.rename("model.", "");
    model.check_resolves();
    model.config["num_mel_bins"] = 17;
    model.check_refused("encoder.conv1.weight");
  }
}

}  // namespace vkformer::testing
