#include <cmath>

#include "model/encoder_cases.h"
#include "support/operator_check.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

const Json kConformer = {{"model_type", "wav2vec2-conformer"},
                         {"hidden_size", 12},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 2},
                         {"intermediate_size", 10},
                         {"conv_dim", Json::array({6, 8})},
                         {"conv_kernel", Json::array({10, 3})},
                         {"conv_stride", Json::array({5, 2})},
                         {"conv_depthwise_kernel_size", 5}};

Result<ForwardInputs> read(const TensorMap& inputs) {
  const auto family = load_config(kConformer);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  ForwardInputs result;
  VKF_CHECK((*family)->read_inputs(inputs, result));
  return result;
}

void check_conformer_inputs(const TensorMap& inputs, const std::vector<std::string>& parts) {
  const auto result = read(inputs);
  REQUIRE_FALSE(result.ok());
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(result.error().message, part), result.error().message);
  }
}

TensorMap sound(int64_t batch, int64_t samples) {
  TensorMap inputs;
  inputs["input_values"] = Tensor::zeros(DType::kF32, {batch, samples});
  return inputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE(
      "wav2vec2-conformer: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kConformer);
    CHECK(facts.source == SourceKind::kWaveform);
    CHECK(facts.width == 12);
    CHECK(facts.encoder_layers == 2);
    const ModelFacts base = facts_of({{"model_type", "wav2vec2-conformer"}});
    CHECK(base.width == 768);
    CHECK(base.encoder_heads == 12);
    const Json ctc = with(kConformer, "architectures", Json::array({"Wav2Vec2ConformerForCTC"}));
    CHECK(facts_of(with(ctc, "vocab_size", 20)).target_vocab == 20);
    CHECK(facts_of(with(ctc, "vocab_size", 20)).head == HeadKind::kCtc);
  }

  TEST_CASE("wav2vec2-conformer: a mask keeps the frames that a row's samples make") {
    auto plain = read(sound(2, 65));
    REQUIRE(plain.ok());
    CHECK(plain->shape.source == 5);
    CHECK(plain->shape.more == std::vector<int64_t>{65, 0});
    TensorMap inputs = sound(1, 65);
    std::vector<int64_t> mask(65, 1);
    inputs["attention_mask"] = Tensor::from_ints({1, 65}, mask);
    CHECK(read(inputs)->shape.more == std::vector<int64_t>{65, 0});
    for (size_t i = 45; i < mask.size(); ++i) mask[i] = 0;
    inputs["attention_mask"] = Tensor::from_ints({1, 65}, mask);
    const auto masked = read(inputs);
    REQUIRE(masked.ok());
    CHECK(masked->shape.more == std::vector<int64_t>{65, 1});
    CHECK(masked->words.at("key_mask") == std::vector<uint32_t>{7});
    CHECK(masked->words.at("kept_frames") == std::vector<uint32_t>{0, 1, 2, ~0u, ~0u});
    inputs["attention_mask"] = Tensor::zeros(DType::kI64, {1, 65});
    check_conformer_inputs(inputs, {"[attention_mask]", "0 samples"});
    inputs["attention_mask"] = Tensor::zeros(DType::kI64, {1, 64});
    check_conformer_inputs(inputs, {"(1, 64)", "(1, 65)"});
    check_conformer_inputs(sound(1, 19), {"[input_values]", "(1, 19)"});
    check_conformer_inputs({}, {"[input_values]", "missing"});
  }

  TEST_CASE("wav2vec2-conformer: hostile sizes and impossible settings are refused") {
    check_sizes(kConformer, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                             "intermediate_size", "conv_depthwise_kernel_size"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kConformer, "conv_depthwise_kernel_size", 4), invalid,
                  {"[conv_depthwise_kernel_size]", "4", "odd"});
    check_refused(with(kConformer, "conv_stride", Json::array({5})), invalid,
                  {"[conv_stride]", "1", "2"});
    check_refused(with(kConformer, "conv_kernel", Json::array({10, 0})), invalid, {"kernel of 0"});
    check_refused(with(kConformer, "feat_extract_norm", "batch"), invalid,
                  {"[feat_extract_norm]", "batch"});
    check_refused(with(kConformer, "add_adapter", true), ErrorCode::kUnsupported,
                  {"[add_adapter]"});
    const Json narrow =
        with(with(kConformer, "hidden_size", 6), "position_embeddings_type", "rotary");
    check_refused(narrow, invalid, {"[position_embeddings_type]", "3"});
    check_refused(with(kConformer, "architectures", Json::array({"Wav2Vec2ConformerForXVector"})),
                  ErrorCode::kUnsupported, {"Wav2Vec2ConformerForXVector"});
  }

  TEST_CASE("wav2vec2-conformer: outputs have a row for each frame, and weights are named") {
    ChangedModel model("wav2vec2-conformer-relative");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    ForwardTaps taps;
    taps.attentions = ForwardTaps::Tap::kOn;
    Graph graph;
    ModelBuilder builder(graph, resolved->weights);
    const ForwardShape shape{.batch = 2, .source = 5, .more = {65, 1}};
    REQUIRE(resolved->family->build_forward(builder, shape, taps).ok());
    CHECK(graph.tensor(graph.find_external("last_hidden_state")).shape == Shape{2, 5, 12});
    CHECK(graph.tensor(graph.find_external("extract_features")).shape == Shape{2, 5, 8});
    CHECK(graph.tensor(graph.find_external("attentions.1")).shape == Shape{2, 2, 5, 5});
    model.tensors.erase("encoder.layers.1.self_attn.pos_bias_u");
    model.check_refused("pos_bias_u");
  }

  TEST_CASE("wav2vec2-conformer: memory of relative positions grows with the tokens") {
    ChangedModel model("wav2vec2-conformer-relative");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    const auto arena = [&](int64_t frames) {
      Graph graph;
      ModelBuilder builder(graph, resolved->weights);
      const ForwardShape shape{.batch = 1, .source = frames, .more = {frames * 10 + 15, 0}};
      const Status built = resolved->family->build_forward(builder, shape, {});
      REQUIRE_MESSAGE(built.ok(), built.error().message);
      const auto plan = make_plan(graph, caps_of_tier(Tier::kBaseline), Precision::kF32);
      REQUIRE(plan.ok());
      return static_cast<double>(plan->arena_bytes);
    };
    const double growth = arena(2048) / arena(1024);
    CHECK(growth > 1.9);
    CHECK(growth < 2.1);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("wav2vec2-conformer: scores of one head, by a temperature, are its relative map") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("wav2vec2-conformer-relative");
    const auto model = Model::load(*test_device(), golden.path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    TensorMap inputs = golden.tensors("inputs.safetensors");
    inputs.erase("attention_mask");
    RunOptions options;
    options.attentions = true;
    options.attention_layer = 0;  // deeper ones see what the temperature has changed
    options.attention_head = 1;
    options.attention_values = RunOptions::AttentionValues::kScores;
    const auto scores = session->run(inputs, options);
    REQUIRE_MESSAGE(scores.ok(), scores.error().message);
    CHECK(scores->count("attentions.1") == 0);
    options.attention_values = RunOptions::AttentionValues::kProbabilities;
    options.temperature = 2.5;
    const auto maps = session->run(inputs, options);
    REQUIRE_MESSAGE(maps.ok(), maps.error().message);
    const Tensor& map = maps->at("attentions.0");
    REQUIRE(map.shape.size() == 4);
    CHECK(map.shape[1] == 1);
    REQUIRE(scores->at("attentions.0").shape == map.shape);
    const std::vector<float> x = *scores->at("attentions.0").to_floats();
    const std::vector<float> p = *map.to_floats();
    const auto keys = static_cast<size_t>(map.shape[3]);
    for (size_t row = 0; row < x.size(); row += keys) {
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) sum += std::exp(x[row + j] / 2.5);
      for (size_t j = 0; j < keys; ++j) {
        CHECK(std::abs(p[row + j] - std::exp(x[row + j] / 2.5) / sum) < 1e-5);
      }
    }
  }
}

}  // namespace vkformer::testing
