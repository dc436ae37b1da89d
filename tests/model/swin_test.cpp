#include "model/picture_cases.h"

namespace vkformer::testing {
namespace {

const Json kSwin = {{"model_type", "swin"},
                    {"embed_dim", 12},
                    {"depths", {2, 1}},
                    {"num_heads", {2, 3}},
                    {"window_size", 3}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("swin: facts are the configuration's, and pictures may have any size") {
    const ModelFacts facts = facts_of(kSwin);
    CHECK(facts.family == "swin");
    CHECK(facts.architecture == "SwinModel");
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.source == SourceKind::kPictures);
    CHECK(facts.width == 24);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.encoder_heads == 3);
    CHECK(facts.grid.channels == 3);
    CHECK(facts.grid.height == 0);
    CHECK(facts.grid.width == 0);
    const ModelFacts tiny = facts_of({{"model_type", "swin"}});
    CHECK(tiny.width == 768);
    CHECK(tiny.encoder_layers == 4);
    CHECK(tiny.encoder_heads == 24);
    const Json classes = with(with(kSwin, "num_labels", 3), "architectures",
                              Json::array({"SwinForImageClassification"}));
    CHECK(facts_of(classes).labels.size() == 3);
  }

  TEST_CASE("swin: hostile sizes and unknown variants are refused") {
    check_sizes(kSwin, {"embed_dim", "window_size", "num_channels"});
    for (const Json& depths : {Json::array(), Json::array({2}), Json::array({2, 0}),
                               Json::array({2, INT64_MAX}), Json(std::vector<int>(17, 1))}) {
      check_refused(with(kSwin, "depths", depths), ErrorCode::kInvalidFile, {"[depths]"});
    }
    for (double ratio : {0.0, -1.0, 1e300, 1e-3}) {
      check_refused(with(kSwin, "mlp_ratio", ratio), ErrorCode::kInvalidFile,
                    {"feed-forward width"});
    }
    check_refused(with(kSwin, "num_heads", {2, 5}), ErrorCode::kInvalidFile, {"24", "5 heads"});
    check_refused(with(kSwin, "num_heads", {0, 3}), ErrorCode::kInvalidFile, {"0 heads"});
    check_refused(with(kSwin, "patch_size", 0), ErrorCode::kInvalidFile, {"[patch_size]"});
    check_refused(with(with(kSwin, "use_absolute_embeddings", true), "patch_size", 225),
                  ErrorCode::kInvalidFile, {"[image_size]", "0 patches"});
    check_refused(with(kSwin, "architectures", Json::array({"SwinForMaskedImageModeling"})),
                  ErrorCode::kUnsupported, {"SwinForMaskedImageModeling"});
    check_refused(with(kSwin, "hidden_act", "mish"), ErrorCode::kUnsupported, {"[hidden_act]"});
  }

  TEST_CASE("swin: a map for every stage, by window") {
    const GoldenGraphs base = golden_graphs("swin-base");
    const Graph graph = picture_graph(base, {.batch = 2, .height = 32, .width = 32});
    CHECK(external_shape(graph, "attentions.0") == Shape{8, 2, 16, 16});
    CHECK(external_shape(graph, "attentions.1") == Shape{2, 4, 16, 16});
    CHECK(external_shape(graph, "attentions.2").empty());
    CHECK(external_shape(graph, "hidden_states.1") == Shape{2, 16, 32});
    CHECK(external_shape(graph, "last_hidden_state") == Shape{2, 16, 32});
    CHECK(external_shape(graph, "pooler_output") == Shape{2, 32});
    // Blocks with a shift have a slice of biases for every window, after their number.
    CHECK(external_shape(graph, "stage.0.0.biases") == Shape{2 * 256});
    CHECK(external_shape(graph, "stage.0.1.biases") == Shape{1 + 4 * 2 * 256});
    CHECK(external_shape(graph, "stage.1.1.biases") == Shape{4 * 256});
    // 9 x 17 patches: 3 x 5 windows of 4, then 5 x 9 tokens: 2 x 3 windows.
    const Graph odd = picture_graph(base, {.batch = 1, .height = 33, .width = 65});
    CHECK(external_shape(odd, "hidden_states.0") == Shape{1, 153, 16});
    CHECK(external_shape(odd, "attentions.0") == Shape{15, 2, 16, 16});
    CHECK(external_shape(odd, "attentions.1") == Shape{6, 4, 16, 16});
  }

  TEST_CASE("swin: one layer and one head can be seen, where they are") {
    const GoldenGraphs base = golden_graphs("swin-base");
    ForwardTaps taps{
        .attentions = ForwardTaps::Tap::kOn, .attention_layer = 1, .attention_head = 3};
    const ForwardShape shape{.batch = 1, .height = 32, .width = 32};
    const Graph graph = base.forward(shape, taps);
    CHECK(external_shape(graph, "attentions.1") == Shape{1, 1, 16, 16});
    CHECK(external_shape(graph, "attentions.0").empty());
    taps.attention_layer = 0;
    check_pass_refused(base, shape, taps, {"[attentions.0]", "2 heads", "head 3"});
  }

  TEST_CASE("swin: pictures that a window does not fit into are refused by stage") {
    const GoldenGraphs base = golden_graphs("swin-base");
    check_pass_refused(base, {.batch = 1, .height = 12, .width = 64}, {},
                       {"[stage 0]", "3 x 16 tokens", "4 tokens a side"});
    check_pass_refused(base, {.batch = 1, .height = 64, .width = 24}, {},
                       {"[stage 1]", "8 x 3 tokens"});
  }

  TEST_CASE("swin: absolute positions fit pictures of one size") {
    ChangedModel model("swin-base");
    model.config["use_absolute_embeddings"] = true;
    model.check_refused("[embeddings.position_embeddings]");
    model.tensors["embeddings.position_embeddings"] = Tensor::zeros(DType::kF32, {1, 64, 16});
    const auto positions = model.resolve();
    REQUIRE_MESSAGE(positions.ok(), positions.error().message);
    CHECK(external_shape(picture_graph(*positions, {.batch = 1, .height = 32, .width = 32}),
                         "last_hidden_state") == Shape{1, 16, 32});
    check_pass_refused(*positions, {.batch = 1, .height = 32, .width = 36}, {},
                       {"[pixel_values]", "72 patches", "64", "32 x 32"});
  }

  TEST_CASE("swin: names may be newer or older, and weights must fit") {
    ChangedModel model("swin-base");
    model.tensors["encoder.layers.0.blocks.0.attention.self.relative_position_index"] =
        Tensor::from_ints({16, 16}, std::vector<int64_t>(256, 0));
    model.check_resolves();
    for (const auto& [then, now] :
         {std::pair{"attention.self.query", "attention.q_proj"},
          std::pair{"attention.self.key", "attention.k_proj"},
          std::pair{"attention.self.value", "attention.v_proj"},
          std::pair{"attention.self.relative_position_bias_table",
                    "attention.relative_position_bias.relative_position_bias_table"},
          std::pair{"attention.output.dense", "attention.o_proj"},
          std::pair{"intermediate.dense", "mlp.fc1"}, std::pair{"output.dense", "mlp.fc2"}}) {
      model.rename(then, now);
    }
    model.check_resolves();
    for (const auto& [bound_key, value, tensor] :
         {std::tuple{"window_size", 5, "relative_position_bias_table"},
          std::tuple{"patch_size", 2, "projection.weight"},
          std::tuple{"mlp_ratio", 3, "encoder.layers.0.blocks.0.intermediate"},
          std::tuple{"num_channels", 1, "projection.weight"}}) {
      const auto& key = bound_key;
      CAPTURE(key);
      ChangedModel changed("swin-base");
      changed.config[key] = value;
      changed.check_refused(tensor);
    }
    ChangedModel deeper("swin-base");
    deeper.config["depths"] = {2, 1};
    deeper.check_refused("encoder.layers.1.blocks.1.");
    deeper.config["depths"] = {3, 2};
    deeper.check_refused("encoder.layers.0.blocks.2.");
  }
}

}  // namespace vkformer::testing
