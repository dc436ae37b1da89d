#include "model/picture_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kCaptions = {{"model_type", "blip"},
                        {"architectures", {"BlipForConditionalGeneration"}},
                        {"vision_config",
                         {{"hidden_size", 36},
                          {"num_hidden_layers", 2},
                          {"num_attention_heads", 3},
                          {"intermediate_size", 50},
                          {"image_size", 20},
                          {"patch_size", 5}}},
                        {"text_config",
                         {{"hidden_size", 40},
                          {"num_hidden_layers", 3},
                          {"num_attention_heads", 5},
                          {"max_position_embeddings", 48},
                          {"vocab_size", 77},
                          {"bos_token_id", 4},
                          {"eos_token_id", 6},
                          {"sep_token_id", 5}}}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("blip: facts come from both nested configurations") {
    const ModelFacts facts = facts_of(kCaptions);
    CHECK(facts.kind == ModelKind::kEncoderDecoder);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.decoder_layers == 3);
    CHECK(facts.width == 40);
    CHECK(facts.max_source == 17);
    CHECK(facts.max_target == 48);
    CHECK(facts.target_vocab == 77);
    CHECK(facts.grid.height == 20);
    const ModelFacts usual = facts_of({{"model_type", "blip"},
                                       {"vision_config", Json::object()},
                                       {"text_config", Json::object()}});
    CHECK(usual.max_source == 577);
    CHECK(usual.decoder_heads == 8);
    CHECK(usual.target_vocab == 30524);
  }

  TEST_CASE("blip: a caption ends with the separator of the text's configuration") {
    const auto family = load_config(with(kCaptions, "eos_token_id", 8));
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    CHECK((*family)->generation().decoder_start == 4);
    CHECK((*family)->generation().eos == std::vector<int64_t>{5});
    CHECK((*family)->generation().pad == 0);
  }

  TEST_CASE("blip: other heads, decoders that see no picture and absurd sizes are refused") {
    check_refused(with(kCaptions, "architectures", {"BlipForQuestionAnswering"}),
                  ErrorCode::kUnsupported, {"BlipForQuestionAnswering"});
    check_refused(with(kCaptions, "text_config", "is_decoder", false), ErrorCode::kUnsupported,
                  {"[text_config.is_decoder]"});
    CHECK_FALSE(load_config(with(kCaptions, "text_config", 3)).ok());
    for (const char* key : {"hidden_size", "num_hidden_layers", "vocab_size"}) {
      check_refused(with(kCaptions, "text_config", key, int64_t{1} << 40), ErrorCode::kInvalidFile,
                    {"[" + std::string(key) + "]"});
    }
  }

  TEST_CASE("blip: a tied head is the embedding, with a bias") {
    const GoldenGraphs tied = golden_graphs("blip-base");
    CHECK(row_of(tied, "decoder") == nullptr);
    REQUIRE(row_of(tied, "words") != nullptr);
    CHECK(row_of(tied, "words")->biases ==
          std::vector<std::string>{"text_decoder.cls.predictions.bias"});
    CHECK(row_of(tied, "decoder.0.cross.kv")->width == 12);
    const GoldenGraphs apart = golden_graphs("blip-untied");
    REQUIRE(row_of(apart, "decoder") != nullptr);
    CHECK(row_of(apart, "decoder")->biases ==
          std::vector<std::string>{"text_decoder.cls.predictions.decoder.bias"});
    const Graph graph = tied.forward({.batch = 2, .target = 5, .height = 12, .width = 12});
    CHECK(external_shape(graph, "last_hidden_state") == Shape{2, 10, 12});
    CHECK(external_shape(graph, "image_embeds") == Shape{2, 10, 12});
    CHECK(external_shape(graph, "decoder_last_hidden_state") == Shape{2, 5, 16});
  }

  TEST_CASE("blip: the decoder's tokens have either of two names") {
    const GoldenGraphs model = golden_graphs("blip-base");
    TensorMap inputs;
    inputs["pixel_values"] = Tensor::zeros(DType::kF32, {1, 3, 12, 12});
    inputs["input_ids"] = Tensor::from_ints({1, 3}, std::vector<int64_t>{1, 7, 8});
    const auto plain = read_forward_inputs(*model.family, inputs);
    REQUIRE_MESSAGE(plain.ok(), plain.error().message);
    CHECK(plain->shape.target == 3);
    CHECK(plain->words.at("decoder_input_ids") == std::vector<uint32_t>{1, 7, 8});
    inputs["decoder_input_ids"] = inputs.at("input_ids");
    const auto both = read_forward_inputs(*model.family, inputs);
    REQUIRE_FALSE(both.ok());
    CHECK(test::contains(both.error().message, "[input_ids] was given beside decoder_input_ids"));
    inputs.erase("input_ids");
    CHECK(read_forward_inputs(*model.family, inputs).ok());
    inputs["attention_mask"] = Tensor::from_ints({1, 3}, std::vector<int64_t>{1, 1, 0});
    const auto mask = read_forward_inputs(*model.family, inputs);
    REQUIRE_FALSE(mask.ok());
    CHECK(test::contains(mask.error().message, "[attention_mask] was given without input_ids"));
    inputs.erase("decoder_input_ids");
    inputs.erase("attention_mask");
    inputs["decoder_attention_mask"] = Tensor::from_ints({1, 3}, std::vector<int64_t>{1, 1, 0});
    const auto alone = read_forward_inputs(*model.family, inputs);
    REQUIRE_FALSE(alone.ok());
    CHECK(test::contains(alone.error().message, "without decoder_input_ids"));
    // A generation writes the tokens itself.
    CHECK_FALSE(check_input_names(*model.family, inputs, InputUse::kGeneration).ok());
  }
}

}  // namespace vkformer::testing
