// Linformer, Performer and the linear Transformer: configurations, weights, and states of bounded
// size.
#include "model/blocks/linear_layers.h"

#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kSizes = {
    {"hidden_size", 24},  {"num_hidden_layers", 2},        {"vocab_size", 60},
    {"norm_first", true}, {"num_attention_heads", 3},      {"lm_head", true},
    {"causal", true},     {"max_position_embeddings", 32}, {"intermediate_size", 30}};

Json config_of(const char* family) {
  Json config = kSizes;
  config["model_type"] = family;
  if (family == std::string("performer")) config["num_features"] = 10;
  if (family == std::string("linformer")) {
    config["projection_dim"] = 7;
    config["causal"] = false;
  }
  return config;
}

constexpr const char* kFamilies[] = {"linformer", "performer", "linear_transformer"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("linear layers: facts are the configuration's") {
    for (const char* family : kFamilies) {
      CAPTURE(family);
      const bool causal = family != std::string("linformer");
      const ModelFacts facts = facts_of(config_of(family));
      CHECK(facts.family == family);
      CHECK(facts.kind == (causal ? ModelKind::kDecoder : ModelKind::kEncoder));
      CHECK(facts.head == (causal ? HeadKind::kLanguage : HeadKind::kMasked));
      CHECK((causal ? facts.decoder_layers : facts.encoder_layers) == 2);
      CHECK((causal ? facts.decoder_heads : facts.encoder_heads) == 3);
      CHECK(facts.width == 24);
      CHECK(facts.max_source == 32);
      const ModelFacts bare =
          facts_of(with(with(config_of(family), "lm_head", false), "causal", false));
      CHECK(bare.head == HeadKind::kNone);
      CHECK(bare.kind == ModelKind::kEncoder);
    }
  }

  TEST_CASE("linear layers: hostile sizes and unknown settings are refused") {
    for (const char* family : kFamilies) {
      check_sizes(config_of(family),
                  {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                   "intermediate_size", "max_position_embeddings"});
      check_refused(with(config_of(family), "num_attention_heads", 5), ErrorCode::kInvalidFile,
                    {"24", "5 heads"});
    }
    check_sizes(config_of("performer"), {"num_features"});
    check_sizes(config_of("linformer"), {"projection_dim"});
    check_refused(with(config_of("performer"), "kernel_eps", -1), ErrorCode::kInvalidFile,
                  {"[kernel_eps]", "-1"});
    check_refused(with(config_of("linear_transformer"), "denominator_eps", 2),
                  ErrorCode::kInvalidFile, {"[denominator_eps]", "2"});
    check_refused(with(config_of("linformer"), "sharing", "some"), ErrorCode::kUnsupported,
                  {"[sharing]", "some", "layerwise"});
    check_refused(with(config_of("linformer"), "causal", true), ErrorCode::kUnsupported,
                  {"[causal]"});
  }

  TEST_CASE("linear layers: weights resolve, and a missing or wrong one is named") {
    ChangedModel heads("linformer-heads");
    heads.check_resolves();
    heads.config["sharing"] = "headwise";
    heads.check_refused("layers.0.attention.E");
    heads.config["sharing"] = "layerwise";
    heads.check_refused("shared_projection");
    ChangedModel pairs("linformer-pairs");
    pairs.check_resolves();
    pairs.config["sharing"] = "headwise";
    pairs.check_refused("layers.0.attention.F");
    ChangedModel performer("performer-steps");
    performer.check_resolves();
    performer.config["num_features"] = 11;
    performer.check_refused("layers.0.attention.projection");
    performer.config["num_features"] = 12;
    performer.tensors.erase("lm_head.bias");
    performer.check_refused("lm_head.bias");
    ChangedModel linear("linear_transformer-stack");
    linear.check_resolves();
    linear.tensors.erase("final_norm.weight");
    linear.check_refused("final_norm");
  }

  TEST_CASE("linear layers: a Linformer reads no more tokens than its matrices project") {
    ChangedModel model("linformer-pairs");
    for (auto& [name, tensor] : model.tensors) {
      if (!name.ends_with("attention.E")) continue;
      tensor = Tensor::zeros(DType::kF32, {tensor.shape[0], 9});
    }
    const auto shorter = model.resolve();
    REQUIRE_MESSAGE(shorter.ok(), shorter.error().message);
    CHECK(shorter->family->facts().max_source == 9);
    const Shape map = output_shape(*shorter, "attentions.1", 3, 8);
    CHECK(map == Shape{3, 2, 8, 5});
  }

  TEST_CASE("linear layers: maps and hidden states are handed out, of the chosen layer and head") {
    const GoldenGraphs model = golden_graphs("performer-steps");
    CHECK(output_shape(model, "attentions.0", 2, 9) == Shape{2, 2, 9, 9});
    CHECK(output_shape(model, "hidden_states.1", 2, 9) == Shape{2, 9, 12});
    CHECK(output_shape(model, "logits", 2, 9) == Shape{2, 9, 32});
    ForwardTaps taps;
    taps.attentions = ForwardTaps::Tap::kOn;
    taps.attention_layer = 1;
    taps.attention_head = 0;
    const Graph graph = model.forward({.batch = 1, .source = 5}, taps);
    CHECK(graph.find_external("attentions.0") == kNoTensor);
    const TensorId map = graph.find_external("attentions.1");
    REQUIRE(map != kNoTensor);
    CHECK(graph.tensor(map).shape == Shape{1, 1, 5, 5});
    taps.raw_scores = ForwardTaps::Tap::kOn;
    Graph refused;
    ModelBuilder builder(refused, model.weights);
    const Status built = model.family->build_forward(builder, {.batch = 1, .source = 5}, taps);
    REQUIRE_FALSE(built.ok());
    CHECK(built.error().code == ErrorCode::kUnsupported);
    CHECK(test::contains(built.error().message, "[attentions]"));
  }

  TEST_CASE("linear layers: the state of a generation does not grow with its capacity") {
    for (const char* name : {"performer-steps", "linear_transformer-steps"}) {
      const GoldenGraphs model = golden_graphs(name);
      StepShape shape{.batch = 2, .beams = 3, .capacity = 24, .prompt = 5};
      const Graph prompt = model.prompt(shape);
      const Graph step = model.step(shape);
      const TensorId state = step.find_external("self_state.1");
      REQUIRE(state != kNoTensor);
      CHECK(step.tensor(state).shape[0] == 6);
      CHECK(step.tensor(state).shape[1] == 2);
      REQUIRE(prompt.find_external("self_state.1") != kNoTensor);
      shape.capacity = 1024;
      const Graph longer = model.step(shape);
      CHECK(longer.tensor(longer.find_external("self_state.1")).shape == step.tensor(state).shape);
      CHECK(longer.find_external("self_kv.0") == kNoTensor);
      shape.prompt = 1;
      CHECK(model.prompt(shape).nodes().empty());
    }
  }

  TEST_CASE("linear layers: an encoder generates nothing, and says so") {
    const GoldenGraphs model = golden_graphs("performer-masked");
    Graph graph;
    ModelBuilder builder(graph, model.weights);
    const auto step = model.family->build_step(builder, {.batch = 1, .beams = 1, .capacity = 8});
    REQUIRE_FALSE(step.ok());
    CHECK(step.error().code == ErrorCode::kUnsupported);
  }
}

}  // namespace vkformer::testing
