// Language models that read images: llava, paligemma, gemma3, idefics3, smolvlm, qwen2_5_vl and
// qwen3_vl.
#include "model/encoder_cases.h"
#include "support/patience.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

constexpr const char* kFamilies[] = {"llava",   "paligemma",  "gemma3",  "idefics3",
                                     "smolvlm", "qwen2_5_vl", "qwen3_vl"};

Json config_of(const std::string& family) {
  return read_json(golden_case(family + "-tiny").path("model/config.json"));
}

Json with_part(const std::string& family, const char* part, const char* key, Json value) {
  Json config = config_of(family);
  config[part][key] = std::move(value);
  return config;
}

TensorMap pass_of(const std::string& family) {
  return golden_case(family + "-tiny").pass_inputs();
}

// The start of a generation, with the images.
TensorMap prompts_of(const std::string& family) {
  TensorMap prompts;
  for (const auto& [name, tensor] : golden_case(family + "-tiny").tensors("inputs.safetensors")) {
    if (name.starts_with("generate.")) prompts.insert_or_assign(name.substr(9), tensor);
    if (name.starts_with("pixel_") || name.starts_with("image_")) prompts.emplace(name, tensor);
  }
  return prompts;
}

struct Loaded {
  Model model;
  Session session;
};

Loaded load(const std::string& family) {
  auto model = Model::load(*test_device(), golden_case(family + "-tiny").path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model, {});
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return {std::move(model).value(), std::move(session).value()};
}

void check_error(const Error& error, ErrorCode code, const std::vector<std::string>& parts) {
  CAPTURE(error.message);
  CHECK(error.code == code);
  for (const std::string& part : parts) CHECK_MESSAGE(test::contains(error.message, part), part);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("language models with images: facts come from the text's configuration") {
    for (const char* name : kFamilies) {
      CAPTURE(name);
      const ModelFacts facts = facts_of(config_of(name));
      CHECK(facts.family == name);
      CHECK(facts.kind == ModelKind::kDecoder);
      CHECK(facts.source == SourceKind::kTokens);
      CHECK(facts.head == HeadKind::kLanguage);
      CHECK(facts.width == 16);
      CHECK(facts.decoder_layers == 2);
      CHECK(facts.target_vocab == 40);
      CHECK(facts.max_target == 64);
      CHECK(facts.prompts == ModelFacts::Prompts::kRounded);
      const bool at_once = std::string(name) == "paligemma";
      CHECK(facts.slots == (at_once ? ModelFacts::Slots::kAfterPrompt : ModelFacts::Slots::kYes));
    }
  }

  TEST_CASE("language models with images: what is missing or unknown is refused by name") {
    const auto invalid = ErrorCode::kInvalidFile;
    const auto unsupported = ErrorCode::kUnsupported;
    for (const char* name : kFamilies) {
      CAPTURE(name);
      Json config = config_of(name);
      config.erase("vision_config");
      check_refused(config, invalid, {"[vision_config]"});
      const char* image =
          config.contains("image_token_id") ? "image_token_id" : "image_token_index";
      check_refused(with(config_of(name), image, 40), unsupported,
                    {"[image_token_id]", "40", "39"});
      check_refused(with(config_of(name), image, -1), unsupported, {"[image_token_id]", "-1"});
      check_refused(with(config_of(name), "architectures", {"SomethingElse"}), unsupported,
                    {"[architectures]", "SomethingElse"});
      check_refused(with_part(name, "text_config", "hidden_size", 0), invalid, {"[hidden_size]"});
      check_refused(with_part(name, "vision_config", "hidden_size", int64_t{1} << 40), invalid,
                    {"[hidden_size]"});
    }
    for (const char* name : {"llava", "paligemma", "gemma3"}) {
      check_refused(with_part(name, "text_config", "model_type", "gpt2"), unsupported,
                    {"[text_config.model_type]", "gpt2"});
      check_refused(with_part(name, "vision_config", "model_type", "vit"), unsupported,
                    {"[vision_config.model_type]", "vit"});
    }
  }

  TEST_CASE("llava: layers and the choice of patches") {
    CHECK(load_config(with(config_of("llava"), "vision_feature_layer", {-1, 0})).ok());
    check_refused(with(config_of("llava"), "vision_feature_layer", -4), ErrorCode::kInvalidFile,
                  {"[vision_feature_layer]", "-4", "-3"});
    check_refused(with(config_of("llava"), "vision_feature_layer", 3), ErrorCode::kInvalidFile,
                  {"[vision_feature_layer]", "3", "2"});
    check_refused(with(config_of("llava"), "vision_feature_select_strategy", "cls"),
                  ErrorCode::kUnsupported, {"[vision_feature_select_strategy]", "cls"});
  }

  TEST_CASE("paligemma: other text models and causal prompts are refused") {
    check_refused(with_part("paligemma", "text_config", "model_type", "gemma2"),
                  ErrorCode::kUnsupported, {"[text_config.model_type]", "'gemma2'"});
    check_refused(with_part("paligemma", "text_config", "use_bidirectional_attention", false),
                  ErrorCode::kUnsupported, {"[use_bidirectional_attention]"});
  }

  TEST_CASE("gemma3: tokens of an image make a square of squares of patches") {
    for (const int64_t tokens : {3, 25, 9}) {
      check_refused(with(config_of("gemma3"), "mm_tokens_per_image", tokens),
                    ErrorCode::kInvalidFile,
                    {"[mm_tokens_per_image]", std::to_string(tokens), "4 x 4"});
    }
  }

  TEST_CASE("qwen2_5_vl and qwen3_vl: sections, windows and DeepStack's layers") {
    const auto invalid = ErrorCode::kInvalidFile;
    Json config = config_of("qwen2_5_vl");
    config["text_config"]["rope_parameters"]["mrope_section"] = {2, 1, 2};
    check_refused(config, invalid, {"[mrope_section]", "4"});
    config["text_config"]["rope_parameters"].erase("mrope_section");
    check_refused(config, invalid, {"[mrope_section]"});
    check_refused(with_part("qwen2_5_vl", "vision_config", "window_size", 3), invalid,
                  {"[vision_config.window_size]", "3", "4"});
    check_refused(with_part("qwen2_5_vl", "vision_config", "out_hidden_size", 24), invalid,
                  {"[vision_config.out_hidden_size]", "24", "16"});
    check_refused(with_part("qwen3_vl", "vision_config", "num_position_embeddings", 8), invalid,
                  {"[vision_config.num_position_embeddings]", "8"});
    check_refused(with_part("qwen3_vl", "vision_config", "deepstack_visual_indexes", {2, 0}),
                  ErrorCode::kUnsupported, {"[vision_config.deepstack_visual_indexes]", "0"});
    check_refused(with_part("qwen3_vl", "vision_config", "deepstack_visual_indexes", {0, 1, 2}),
                  invalid, {"[vision_config.deepstack_visual_indexes]", "3", "2"});
  }

  TEST_CASE("qwen2_5_vl: older files have the text's keys beside the vision's") {
    Json config = config_of("qwen2_5_vl");
    for (const auto& [key, value] : config["text_config"].items()) {
      if (key != "model_type" && key != "rope_parameters") config[key] = value;
    }
    config["rope_theta"] = 1e4;
    config["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {2, 1, 1}}};
    config.erase("text_config");
    CHECK(facts_of(config).width == 16);
  }

  TEST_CASE("language models with images: weights have the prefixes of files of both ages") {
    ChangedModel llava("llava-tiny");
    llava.check_resolves();
    llava.rename("language_model.model.", "model.language_model.");
    llava.rename("language_model.lm_head.", "lm_head.");
    llava.rename("vision_tower.vision_model.", "model.vision_tower.");
    llava.rename("multi_modal_projector.", "model.multi_modal_projector.");
    llava.check_resolves();
    llava.rename("linear_2.bias", "linear_3.bias");
    llava.check_refused("linear_2.bias");
    ChangedModel qwen("qwen2_5_vl-tiny");
    qwen.check_resolves();
    qwen.rename("visual.", "model.visual.");
    qwen.rename("model.layers.", "model.language_model.layers.");
    qwen.rename("model.embed_tokens.", "model.language_model.embed_tokens.");
    qwen.rename("model.norm.", "model.language_model.norm.");
    qwen.check_resolves();
  }
}

TEST_SUITE("model") {
  TEST_CASE("images and image tokens must be as many") {
    Loaded llava = load("llava");
    TensorMap inputs = pass_of("llava");
    std::vector<int64_t> ids = inputs.at("input_ids").to_ints().value();
    const auto image = std::find(ids.begin(), ids.end(), 39);
    REQUIRE(image != ids.end());
    *image = 5;
    inputs["input_ids"] = Tensor::from_ints(inputs.at("input_ids").shape, ids);
    const auto fewer = llava.session.run(inputs, {});
    REQUIRE_FALSE(fewer.ok());
    check_error(fewer.error(), ErrorCode::kInvalidArgument, {"[pixel_values]", "18", "17", "39"});
    inputs = pass_of("llava");
    inputs["pixel_values"] = Tensor::zeros(DType::kF32, {2, 3, 12, 13});
    const auto wide = llava.session.run(inputs, {});
    REQUIRE_FALSE(wide.ok());
    check_error(wide.error(), ErrorCode::kInvalidArgument, {"[pixel_values]", "13", "12"});
  }

  TEST_CASE("images that some ways to generate cannot take are refused") {
    Loaded llava = load("llava");
    const TensorMap prompts = prompts_of("llava");
    GenerateOptions options{.max_new_tokens = 3};
    options.context = 8;
    const auto rolled = llava.session.generate_masked(prompts, options);
    REQUIRE_FALSE(rolled.ok());
    check_error(rolled.error(), ErrorCode::kUnsupported, {"[context]", "8"});
    options.context.reset();
    options.contrastive_tokens = 4;
    options.contrast = 0.6;
    const auto contrasted = llava.session.generate_masked(prompts, options);
    REQUIRE_FALSE(contrasted.ok());
    check_error(contrasted.error(), ErrorCode::kUnsupported, {"[contrastive_tokens]"});
    const auto scored = llava.session.score_masked(prompts, {{5}, {6}});
    REQUIRE_FALSE(scored.ok());
    check_error(scored.error(), ErrorCode::kUnsupported, {"[score]"});
    TensorMap ending = prompts;
    std::vector<int64_t> ids = ending.at("input_ids").to_ints().value();
    std::rotate(ids.begin(), ids.begin() + 2, ids.begin() + ending.at("input_ids").shape[1]);
    const auto last = std::find(ids.begin(), ids.end(), 39);
    const auto end = ids.begin() + ending.at("input_ids").shape[1] - 1;
    std::iter_swap(last, end);
    ending["input_ids"] = Tensor::from_ints(ending.at("input_ids").shape, ids);
    const auto ends = llava.session.generate_masked(ending, {.max_new_tokens = 3});
    REQUIRE_FALSE(ends.ok());
    check_error(ends.error(), ErrorCode::kUnsupported, {"[input_ids]", "39"});
  }

  TEST_CASE("several sequences, slices and a batch give what one prompt alone gives") {
    for (const char* name : kFamilies) {
      CAPTURE(name);
      Loaded loaded = load(name);
      const TensorMap prompts = prompts_of(name);
      GenerateOptions options{.max_new_tokens = 6};
      options.suppress = {38, 39};
      const auto plain = loaded.session.generate_masked(prompts, options);
      REQUIRE_MESSAGE(plain.ok(), plain.error().message);
      REQUIRE(plain->size() == 2);
      // Sampled sequences that are all alike.
      GenerateOptions drawn = options;
      drawn.choice = TokenChoice::kSampled;
      drawn.sampling.top_k = 1;
      drawn.return_sequences = 2;
      const auto twice = loaded.session.generate_masked(prompts, drawn);
      REQUIRE_MESSAGE(twice.ok(), twice.error().message);
      for (size_t i = 0; i < 2; ++i) {
        REQUIRE((*twice)[i].size() == 2);
        for (const Hypothesis& found : (*twice)[i]) CHECK(found.ids == (*plain)[i][0].ids);
      }
      const Status started = loaded.session.start_generation(prompts, options);
      REQUIRE_MESSAGE(started.ok(), started.error().message);
      const Patience patience;
      for (;;) {
        const auto advanced = loaded.session.advance(100.0);
        REQUIRE_MESSAGE(advanced.ok(), advanced.error().message);
        REQUIRE(patience.left());
        if (!advanced->more_to_submit()) break;
      }
      const auto sliced = loaded.session.finish_generation();
      REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
      for (size_t i = 0; i < 2; ++i) CHECK((*sliced)[i][0].ids == (*plain)[i][0].ids);
    }
  }
}

}  // namespace vkformer::testing
