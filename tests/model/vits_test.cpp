#include "model/picture_cases.h"
#include "recording/forward_inputs.h"
#include "weights/weight_table.h"

namespace vkformer::testing {
namespace {

const Json kSpeech = {{"model_type", "vits"}, {"architectures", {"VitsModel"}}};

Tensor one_number(double value) {
  return Tensor::from_floats({1}, std::vector<float>{static_cast<float>(value)});
}

TensorMap text_inputs(int64_t tokens) {
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, tokens}, std::vector<int64_t>(tokens, 3));
  return inputs;
}

void check_input_refused(const GoldenGraphs& model, const std::string& name, Tensor value,
                         const std::string& part) {
  TensorMap inputs = text_inputs(3);
  inputs[name] = std::move(value);
  const auto read = read_forward_inputs(*model.family, inputs);
  REQUIRE_FALSE(read.ok());
  CHECK_MESSAGE(test::contains(read.error().message, part), read.error().message);
}

// What a first pass gives: log durations (1, S, 1) and means with log deviations (1, S, 2 F).
TensorMap first_outputs(const std::vector<float>& logs, int64_t width) {
  const auto tokens = static_cast<int64_t>(logs.size());
  std::vector<float> prior;
  for (int64_t i = 0; i < tokens * 2 * width; ++i) prior.push_back(static_cast<float>(i));
  TensorMap outputs;
  outputs["log_durations"] = Tensor::from_floats({1, tokens, 1}, logs);
  outputs["prior"] = Tensor::from_floats({1, tokens, 2 * width}, prior);
  return outputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("vits: facts, and the configuration class's defaults") {
    const ModelFacts facts = facts_of(kSpeech);
    CHECK(facts.kind == ModelKind::kEncoder);
    CHECK(facts.head == HeadKind::kSpeech);
    CHECK(facts.passes == ModelFacts::Passes::kTwo);
    CHECK(facts.encoder_layers == 6);
    CHECK(facts.width == 192);
    CHECK(facts.source_vocab == 38);
    CHECK(facts.sampling_rate == 16000);
    CHECK(facts.speakers == 0);
    const ModelFacts several =
        facts_of(with(with(kSpeech, "num_speakers", 5), "speaker_embedding_size", 4));
    CHECK(several.speakers == 5);
  }

  TEST_CASE("vits: settings that cannot be are refused by name") {
    check_sizes(kSpeech, {"hidden_size", "vocab_size", "num_hidden_layers", "flow_size"});
    check_refused(with(kSpeech, "architectures", {"VitsForSomething"}), ErrorCode::kUnsupported,
                  {"VitsForSomething"});
    check_refused(with(kSpeech, "flow_size", 7), ErrorCode::kInvalidFile, {"[flow_size]", "7"});
    check_refused(with(kSpeech, "num_speakers", 2), ErrorCode::kInvalidFile,
                  {"[speaker_embedding_size]"});
    check_refused(with(kSpeech, "upsample_rates", {8, 8}), ErrorCode::kInvalidFile,
                  {"[upsample_rates]", "2", "4"});
    check_refused(with(kSpeech, "upsample_kernel_sizes", {16, 16, 4, 1}), ErrorCode::kInvalidFile,
                  {"[upsample_rates]", "at least its rate"});
    check_refused(with(kSpeech, "upsample_initial_channel", 15), ErrorCode::kInvalidFile,
                  {"[upsample_initial_channel]", "16"});
    check_refused(with(kSpeech, "resblock_kernel_sizes", {3, 4, 11}), ErrorCode::kInvalidFile,
                  {"[resblock_kernel_sizes]", "4", "odd"});
    check_refused(with(kSpeech, "resblock_dilation_sizes", {{1, 3}}), ErrorCode::kInvalidFile,
                  {"[resblock_kernel_sizes]", "3", "1"});
    check_refused(with(kSpeech, "wavenet_dilation_rate", 1024), ErrorCode::kInvalidFile,
                  {"[wavenet_kernel_size]"});
    check_refused(with(kSpeech, "depth_separable_channels", 4), ErrorCode::kUnsupported,
                  {"[depth_separable_channels]", "4"});
    check_refused(with(kSpeech, "duration_predictor_tail_bound", 0), ErrorCode::kInvalidFile,
                  {"[duration_predictor_tail_bound]"});
    check_refused(with(kSpeech, "speaking_rate", 0), ErrorCode::kInvalidFile,
                  {"[speaking_rate]", "above 0"});
    check_refused(with(kSpeech, "noise_scale", -1), ErrorCode::kInvalidFile, {"[noise_scale]"});
  }

  TEST_CASE("vits: a pass takes numbers, and a speaker that the model has") {
    const GoldenGraphs one = golden_graphs("vits-convs");
    check_input_refused(one, "speaking_rate", one_number(0), "[speaking_rate] is 0");
    check_input_refused(one, "noise_scale", one_number(-2), "[noise_scale] is -2");
    check_input_refused(one, "noise_scale", Tensor::zeros(DType::kF32, {2}), "(2)");
    check_input_refused(one, "seed", Tensor::zeros(DType::kI64, {2}), "[seed]");
    check_input_refused(one, "speaker_id", Tensor::from_ints({1}, {0}), "has one voice");
    check_input_refused(one, "pixel_values", one_number(1), "nearest");
    const GoldenGraphs several = golden_graphs("vits-flows");
    check_input_refused(several, "speaker_id", Tensor::from_ints({1}, {3}), "0 to 2");
    check_input_refused(several, "speaker_id", Tensor::from_ints({1}, {-1}), "[speaker_id] is -1");
  }

  TEST_CASE("vits: noise is PyTorch's by the seed, and none by a scale of 0") {
    const GoldenGraphs model = golden_graphs("vits-flows");
    TensorMap inputs = text_inputs(10);
    const auto quiet = read_forward_inputs(*model.family, inputs);
    REQUIRE(quiet.ok());
    CHECK(quiet->words.at("duration_noise.0") == std::vector<uint32_t>(10, 0u));
    inputs["noise_scale_duration"] = one_number(0.5);
    inputs["seed"] = Tensor::from_ints({1}, {7});
    const auto first = read_forward_inputs(*model.family, inputs);
    REQUIRE(first.ok());
    const auto again = read_forward_inputs(*model.family, inputs);
    REQUIRE(again.ok());
    CHECK(first->words == again->words);
    inputs["seed"] = Tensor::from_ints({1}, {8});
    const auto other = read_forward_inputs(*model.family, inputs);
    REQUIRE(other.ok());
    CHECK(first->words != other->words);
  }

  TEST_CASE("vits: frames are the tokens, each as long as its duration") {
    const GoldenGraphs model = golden_graphs("vits-convs");
    TensorMap inputs = text_inputs(3);
    inputs["speaking_rate"] = one_number(1);
    // 2, 0 and 1 frames: exp(0.5) is 1.65, exp(-inf) is 0 and exp(-1) 0.37.
    TensorMap outputs = first_outputs({0.5f, -std::numeric_limits<float>::infinity(), -1.0f}, 8);
    const auto second = model.family->second_inputs(inputs, outputs);
    REQUIRE_MESSAGE(second.ok(), second.error().message);
    CHECK(second->shape.source == 3);
    CHECK(outputs.at("durations").to_ints().value() == std::vector<int64_t>{2, 0, 1});
    CHECK(outputs.at("sequence_lengths").to_ints().value() == std::vector<int64_t>{24});
    CHECK(outputs.count("prior") == 0);
    // Means of 8 channels, then deviations: token 2 begins at 32.
    const std::vector<float> first = {0, 1, 2, 3, 0, 1, 2, 3, 32, 33, 34, 35};
    CHECK(second->words.at("latents.0") == float_words(first));
    const Graph graph = [&] {
      Graph made;
      ModelBuilder builder(made, model.weights);
      const Status built = model.family->build_second(builder, second->shape);
      REQUIRE_MESSAGE(built.ok(), built.error().message);
      return made;
    }();
    CHECK(external_shape(graph, "waveform") == Shape{1, 24});
  }

  TEST_CASE("vits: durations beyond all speech are refused") {
    const GoldenGraphs model = golden_graphs("vits-convs");
    const TensorMap inputs = text_inputs(2);
    for (const float log :
         {20.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      TensorMap outputs = first_outputs({0.0f, log}, 8);
      const auto second = model.family->second_inputs(inputs, outputs);
      REQUIRE_FALSE(second.ok());
      CHECK(test::contains(second.error().message, "token 1 of row 0"));
    }
    // A text may be silent: one frame of nothing.
    TensorMap outputs = first_outputs({-200.0f, -200.0f}, 8);
    outputs["log_durations"] = Tensor::from_floats(
        {1, 2, 1}, std::vector<float>(2, -std::numeric_limits<float>::infinity()));
    const auto silent = model.family->second_inputs(inputs, outputs);
    REQUIRE(silent.ok());
    CHECK(silent->shape.source == 1);
  }

  TEST_CASE("vits: weights are found as lengths and directions, by either name, or whole") {
    ChangedModel older("vits-convs");
    TensorMap renamed;
    for (auto& [name, tensor] : older.tensors) {
      std::string now = name;
      for (const auto& [from, to] : {std::pair{"parametrizations.weight.original0", "weight_g"},
                                     std::pair{"parametrizations.weight.original1", "weight_v"}}) {
        const size_t at = now.find(from);
        if (at != std::string::npos) now.replace(at, std::string(from).size(), to);
      }
      renamed.emplace(std::move(now), std::move(tensor));
    }
    older.tensors = std::move(renamed);
    older.check_resolves();
    ChangedModel odd("vits-convs");
    odd.tensors["decoder.upsampler.0.weight"] = Tensor::zeros(DType::kF32, {16, 8, 7});
    odd.check_refused("decoder.upsampler.0.weight");
    ChangedModel lacking("vits-convs");
    lacking.tensors.erase("flow.flows.0.wavenet.in_layers.0.parametrizations.weight.original0");
    lacking.check_refused("flow.flows.0.wavenet.in_layers.0");
  }
}

}  // namespace vkformer::testing
