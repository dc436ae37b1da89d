#include "model/encoder_cases.h"
#include "model/gato_sequence.h"

namespace vkformer::testing {
namespace {

using Kind = GatoSlot::Kind;

const Json kGato = {{"model_type", "gato"},
                    {"text_vocab_size", 20},
                    {"num_bins", 16},
                    {"hidden_size", 8},
                    {"num_hidden_layers", 2},
                    {"num_attention_heads", 2},
                    {"intermediate_size", 12},
                    {"patch_size", 4},
                    {"max_observation_tokens", 8},
                    {"max_position_embeddings", 40}};

// Two steps of one row: a picture of two patches, one value and one id each, actions in the first.
TensorMap two_steps() {
  TensorMap inputs;
  inputs["text_ids"] = Tensor::from_ints({1, 2}, std::vector<int64_t>{3, 4});
  inputs["pixel_values"] = Tensor::zeros(DType::kF32, {1, 2, 3, 4, 8});
  inputs["continuous_observations"] =
      Tensor::from_floats({1, 2, 1}, std::vector<float>{-1e9f, 1e9f});
  inputs["discrete_observations"] = Tensor::from_ints({1, 2, 1}, std::vector<int64_t>{7, 8});
  inputs["continuous_actions"] = Tensor::from_floats({1, 1, 2}, std::vector<float>{0.0f, 5.0f});
  return inputs;
}

void check_gato_inputs(const TensorMap& inputs, const std::vector<std::string>& parts) {
  const auto family = load_config(kGato);
  REQUIRE(family.ok());
  ForwardInputs result;
  const Status read = (*family)->read_inputs(inputs, result);
  REQUIRE_FALSE(read.ok());
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(read.error().message, part), read.error().message);
  }
}

TensorMap changed(const std::string& name, Tensor tensor) {
  TensorMap inputs = two_steps();
  inputs.insert_or_assign(name, std::move(tensor));
  return inputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gato: facts are the configuration's") {
    const ModelFacts facts = facts_of(kGato);
    CHECK(facts.source == SourceKind::kArrays);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.target_vocab == 37);
    CHECK(facts.encoder_layers == 2);
    CHECK(facts.max_source == 40);
  }

  TEST_CASE("gato: a sequence is text, then steps of patches, observations, separator, actions") {
    const auto family = load_config(kGato);
    REQUIRE(family.ok());
    ForwardInputs result;
    REQUIRE((*family)->read_inputs(two_steps(), result).ok());
    const std::vector<uint32_t> ids = {3, 4, ~0u, ~0u, 20, 7, 36, 28, 35, ~0u, ~0u, 35, 8, 36};
    CHECK(result.words.at("token_ids") == ids);
    CHECK(result.words.at("input_ids").size() == ids.size() - 4);
    // A black pixel is -1 / sqrt(4).
    CHECK(result.words.at("pixel_values")[0] == float_words({-0.5f})[0]);
    const GatoSizes sizes = GatoSizes::from_words(result.shape.more, 1);
    CHECK(sizes.words() == result.shape.more);
    CHECK(sizes.tokens() == 14);
    CHECK(sizes.context() == 14);
    const std::vector<GatoSlot> slots = gato_slots(sizes);
    CHECK(slots[3].kind == Kind::kPatch);
    CHECK(slots[3].seen == 1);
    CHECK(slots[5].kind == Kind::kDiscrete);
    CHECK(slots[5].seen == 3);
    CHECK(slots[8].kind == Kind::kAction);
    CHECK(slots[8].index == 1);
  }

  TEST_CASE("gato: inputs that do not fit are refused, with their numbers") {
    check_gato_inputs({}, {"[text_ids]", "missing"});
    check_gato_inputs(changed("text_ids", Tensor::from_ints({1, 1}, std::vector<int64_t>{20})),
                      {"[text_ids]", "20", "19"});
    check_gato_inputs(changed("text_ids", Tensor::from_ints({2, 1}, std::vector<int64_t>{1, 1})),
                      {"[pixel_values]", "1 rows", "2"});
    check_gato_inputs(changed("pixel_values", Tensor::zeros(DType::kF32, {1, 2, 3, 4, 6})),
                      {"[pixel_values]", "(1, 2, 3, 4, 6)", "4 pixels"});
    check_gato_inputs(changed("pixel_values", Tensor::zeros(DType::kF32, {1, 2, 3, 12, 12})),
                      {"11 tokens a time step", "for 8"});
    check_gato_inputs(changed("continuous_actions", Tensor::zeros(DType::kF32, {1, 3, 2})),
                      {"[continuous_actions]", "3", "2"});
    check_gato_inputs(changed("continuous_actions", Tensor::zeros(DType::kF32, {1, 0, 40})),
                      {"51 tokens", "for 40"});
    check_gato_inputs(changed("text_ids", Tensor::zeros(DType::kI64, {1, 39})), {"for 40"});
    check_gato_inputs(changed("continuous_observations",
                              Tensor::from_floats({1, 2, 1}, std::vector<float>{NAN, 0.0f})),
                      {"[continuous_observations]", "NaN"});
    TensorMap empty;
    empty["discrete_observations"] = Tensor::zeros(DType::kI64, {1, int64_t{1} << 50, 0});
    check_gato_inputs(empty, {std::to_string(int64_t{1} << 50), "40"});
  }

  TEST_CASE("gato: hostile sizes and other activations are refused") {
    check_sizes(kGato, {"hidden_size", "num_hidden_layers", "num_attention_heads", "patch_size",
                        "intermediate_size", "text_vocab_size", "num_bins",
                        "max_observation_tokens", "max_position_embeddings"});
    check_refused(with(kGato, "hidden_act", "relu"), ErrorCode::kUnsupported,
                  {"[hidden_act]", "relu"});
    check_refused(with(kGato, "mu", 0.0), ErrorCode::kInvalidArgument, {"[mu]"});
  }

  TEST_CASE("gato: a pass hands out ids, logits and actions, and missing weights are named") {
    ChangedModel model("gato-acts");
    const auto resolved = model.resolve();
    REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
    ForwardInputs read;
    REQUIRE(
        resolved->family->read_inputs(golden_case("gato-acts").tensors("inputs.safetensors"), read)
            .ok());
    Graph graph;
    ModelBuilder builder(graph, resolved->weights);
    REQUIRE(resolved->family->build_forward(builder, read.shape, {}).ok());
    CHECK(graph.tensor(graph.find_external("logits")).shape == Shape{2, 22, 37});
    CHECK(graph.tensor(graph.find_external("action_ids")).shape == Shape{2, 3});
    CHECK(graph.tensor(graph.find_external("actions")).shape == Shape{2, 3});
    // Without observations a pass is over text.
    Graph text;
    ModelBuilder words(text, resolved->weights);
    REQUIRE(resolved->family->build_forward(words, {.batch = 1, .source = 4}, {}).ok());
    CHECK(text.tensor(text.find_external("logits")).shape == Shape{1, 4, 37});
    CHECK(text.find_external("action_ids") == kNoTensor);
    model.tensors.erase("observation_embeddings.weight");
    model.check_refused("observation_embeddings.weight");
  }
}

}  // namespace vkformer::testing
