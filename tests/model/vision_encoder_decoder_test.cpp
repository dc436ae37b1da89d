#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kCaptioning = {{"model_type", "vision-encoder-decoder"},
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

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("vision-encoder-decoder: facts come from both nested configurations") {
    const auto family = load_config(kCaptioning);
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
    const ModelFacts deit = facts_of(with(kCaptioning, "encoder", "model_type", "deit"));
    CHECK(deit.max_source == 18);
  }

  TEST_CASE("vision-encoder-decoder: token ids are the model's own, else the decoder's") {
    const auto family = load_config(kCaptioning);
    REQUIRE(family.ok());
    CHECK((*family)->generation().decoder_start == 4);
    CHECK((*family)->generation().eos == std::vector<int64_t>{5});
    CHECK((*family)->generation().pad == 5);
    const auto own =
        load_config(with(with(kCaptioning, "decoder_start_token_id", 7), "eos_token_id", 8));
    REQUIRE(own.ok());
    CHECK((*own)->generation().decoder_start == 7);
    CHECK((*own)->generation().eos == std::vector<int64_t>{8});
  }

  TEST_CASE("vision-encoder-decoder: other encoders, decoders and couplings are refused") {
    check_refused(with(kCaptioning, "encoder", "model_type", "swin"), ErrorCode::kUnsupported,
                  {"[encoder.model_type]", "swin"});
    check_refused(with(kCaptioning, "decoder", "model_type", "bert"), ErrorCode::kUnsupported,
                  {"[decoder.model_type]", "bert"});
    check_refused(with(kCaptioning, "decoder", "add_cross_attention", false),
                  ErrorCode::kUnsupported, {"[decoder.add_cross_attention]"});
    check_refused(with(kCaptioning, "decoder", "cross_attention_hidden_size", 36),
                  ErrorCode::kUnsupported, {"[decoder.cross_attention_hidden_size]"});
    CHECK_FALSE(load_config(with(kCaptioning, "encoder", 3)).ok());
    CHECK_FALSE(load_config({{"model_type", "vision-encoder-decoder"}}).ok());
    for (const char* key : {"n_embd", "n_layer", "n_head", "n_positions", "vocab_size"}) {
      check_refused(with(kCaptioning, "decoder", key, int64_t{1} << 40), ErrorCode::kInvalidFile,
                    {"[" + std::string(key) + "]"});
    }
  }

  TEST_CASE("vision-encoder-decoder: TrOCR's decoder reads an encoder of another width") {
    const GoldenGraphs model = golden_graphs("vision-encoder-decoder-trocr");
    CHECK(row_of(model, "enc_to_dec_proj") == nullptr);
    REQUIRE(row_of(model, "decoder.0.cross.kv") != nullptr);
    CHECK(row_of(model, "decoder.0.cross.kv")->width == 32);
    CHECK(row_of(model, "decoder.embed_norm") == nullptr);
    const WeightRow* positions = row_of(model, "decoder.positions");
    REQUIRE(positions != nullptr);
    CHECK(positions->rows == 24);  // 20, and those up to padding, which is 3
    for (size_t d = 0; d < 24; ++d) CHECK(positions->computed[3 * 24 + d] == 0.0f);
    const Json config = with(kCaptioning, "decoder", "model_type", "trocr");
    const auto family = load_config(config);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    CHECK((*family)->facts().width == 1024);
    CHECK((*family)->facts().decoder_layers == 12);
    CHECK((*family)->facts().max_target == 512);
    CHECK((*family)->generation().pad == 1);
    Json fixed = config;
    fixed["decoder"]["use_learned_position_embeddings"] = false;
    fixed["decoder"]["pad_token_id"] = 77;
    check_refused(fixed, ErrorCode::kInvalidFile, {"[decoder.pad_token_id]", "77", "76"});
    fixed["decoder"]["pad_token_id"] = 76;
    CHECK(load_config(fixed).ok());
    fixed["decoder"]["cross_attention_hidden_size"] = 35;
    check_refused(fixed, ErrorCode::kUnsupported,
                  {"[decoder.cross_attention_hidden_size]", "35", "36"});
  }

  TEST_CASE("vision-encoder-decoder: Donut's encoder takes pictures of any size") {
    const GoldenGraphs model = golden_graphs("vision-encoder-decoder-donut");
    CHECK(row_of(model, "decoder.norm") != nullptr);
    CHECK(row_of(model, "encoder.norm") == nullptr);
    const auto tokens = [&](int64_t height, int64_t width) {
      const Graph graph =
          model.forward({.batch = 1, .target = 3, .height = height, .width = width});
      const TensorId states = graph.find_external("encoder_last_hidden_state");
      REQUIRE(states != kNoTensor);
      return graph.tensor(states).shape;
    };
    CHECK(tokens(28, 20) == Shape{1, 12, 24});
    CHECK(tokens(41, 33) == Shape{1, 30, 24});
    Json config = with(kCaptioning, "encoder", "model_type", "donut-swin");
    CHECK(facts_of(config).grid.height == 0);
    config["encoder"]["use_absolute_embeddings"] = true;
    check_refused(config, ErrorCode::kUnsupported, {"[encoder.use_absolute_embeddings]"});
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
