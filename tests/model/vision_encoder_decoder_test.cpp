#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kVision = {{"model_type", "vision-encoder-decoder"},
                      {"encoder",
                       {{"model_type", "vit"},
                        {"hidden_size", 36},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 3},
                        {"intermediate_size", 50},
                        {"image_size", 20},
                        {"patch_size", 5}}},
                      {"decoder",
                       {{"model_type", "gpt2"},
                        {"add_cross_attention", true},
                        {"n_embd", 40},
                        {"n_layer", 3},
                        {"n_head", 5},
                        {"n_positions", 48},
                        {"vocab_size", 77},
                        {"bos_token_id", 4},
                        {"eos_token_id", 5}}}};

Json with_nested(const char* part, const char* key, Json value) {
  Json config = kVision;
  config[part][key] = std::move(value);
  return config;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("vision-encoder-decoder: facts come from both nested configurations") {
    const auto family = load_config(kVision);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const ModelFacts& facts = (*family)->facts();
    CHECK(facts.kind == ModelKind::kEncoderDecoder);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.decoder_layers == 3);
    CHECK(facts.width == 40);
    CHECK(facts.max_source == 17);
    CHECK(facts.max_target == 48);
    CHECK(facts.target_vocab == 77);
    CHECK(facts.grid.height == 20);
    const ModelFacts deit = facts_of(with_nested("encoder", "model_type", "deit"));
    CHECK(deit.max_source == 18);
  }

  TEST_CASE("vision-encoder-decoder: token ids are the model's own, else the decoder's") {
    const auto family = load_config(kVision);
    REQUIRE(family.ok());
    CHECK((*family)->generation().decoder_start == 4);
    CHECK((*family)->generation().eos == std::vector<int64_t>{5});
    CHECK((*family)->generation().pad == 5);
    const auto own =
        load_config(with(with(kVision, "decoder_start_token_id", 7), "eos_token_id", 8));
    REQUIRE(own.ok());
    CHECK((*own)->generation().decoder_start == 7);
    CHECK((*own)->generation().eos == std::vector<int64_t>{8});
  }

  TEST_CASE("vision-encoder-decoder: other encoders, decoders and couplings are refused") {
    check_refused(with_nested("encoder", "model_type", "swin"), ErrorCode::kUnsupported,
                  {"[encoder.model_type]", "swin"});
    check_refused(with_nested("decoder", "model_type", "trocr"), ErrorCode::kUnsupported,
                  {"[decoder.model_type]", "trocr"});
    check_refused(with_nested("decoder", "add_cross_attention", false), ErrorCode::kUnsupported,
                  {"[decoder.add_cross_attention]"});
    check_refused(with_nested("decoder", "cross_attention_hidden_size", 36),
                  ErrorCode::kUnsupported, {"[decoder.cross_attention_hidden_size]"});
    CHECK_FALSE(load_config(with(kVision, "encoder", 3)).ok());
    CHECK_FALSE(load_config({{"model_type", "vision-encoder-decoder"}}).ok());
    for (const char* key : {"n_embd", "n_layer", "n_head", "n_positions", "vocab_size"}) {
      check_refused(with_nested("decoder", key, int64_t{1} << 40), ErrorCode::kInvalidFile,
                    {"[" + std::string(key) + "]"});
    }
  }

  TEST_CASE("vision-encoder-decoder: a projection stands between stacks of different widths") {
    const GoldenGraphs model = golden_graphs("vision-encoder-decoder-projected");
    REQUIRE(row_of(model, "enc_to_dec_proj") != nullptr);
    CHECK(row_of(model, "enc_to_dec_proj")->width == 36);
    CHECK(row_of(model, "decoder.0.cross.kv")->axes == WeightRow::Axes::kInOut);
    CHECK(row_of(model, "head")->sources ==
          std::vector<std::string>{"decoder.transformer.wte.weight"});
    const Graph graph = model.forward({.batch = 2, .target = 5, .height = 20, .width = 20});
    const TensorId states = graph.find_external("encoder_last_hidden_state");
    REQUIRE(states != kNoTensor);
    CHECK(graph.tensor(states).shape == Shape{2, 17, 36});
    ChangedModel changed("vision-encoder-decoder-projected");
    changed.tensors["decoder.lm_head.weight"] =
        changed.tensors.at("decoder.transformer.wte.weight");
    changed.check_resolves();
    changed.tensors.erase("enc_to_dec_proj.weight");
    changed.check_refused("enc_to_dec_proj.weight");
  }
}

}  // namespace vkformer::testing
