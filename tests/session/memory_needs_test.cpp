// What memory_needs says before anything is made, against what the device then holds.
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

struct Run {
  const char* golden;
  SessionSizes sizes;
  bool own_inputs = false;  // those of the golden case
};

// Token ids that every golden vocabulary has.
std::vector<std::vector<int64_t>> rows_of(const SessionSizes& sizes) {
  const std::vector<int64_t> row(static_cast<size_t>(sizes.tokens), 3);
  return std::vector<std::vector<int64_t>>(static_cast<size_t>(sizes.batch), row);
}

Tensor ids_of(const SessionSizes& sizes) {
  Tensor ids = Tensor::zeros(DType::kI64, {sizes.batch, sizes.tokens});
  for (size_t i = 0; i < ids.bytes.size(); i += 8) ids.bytes[i] = std::byte{3};
  return ids;
}

TensorMap inputs_of(const ModelInfo& info, const SessionSizes& sizes, const GoldenCase& golden) {
  if (!sizes.inputs.empty()) return sizes.inputs;
  TensorMap inputs;
  if (info.source == SourceKind::kTokens) {
    inputs["input_ids"] = ids_of(sizes);
    if (info.kind == ModelKind::kEncoderDecoder) inputs["decoder_input_ids"] = ids_of(sizes);
    return inputs;
  }
  Tensor pictures = golden.tensors("inputs.safetensors").at("pixel_values");
  Shape shape = pictures.shape;
  shape[0] = sizes.batch;
  inputs["pixel_values"] = Tensor::zeros(DType::kF32, shape);
  return inputs;
}

// Bytes that the device holds once a session has run that much.
uint64_t held_after(const Device& device, const Run& run, const GoldenCase& golden) {
  const auto model = Model::load(device, golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  if (run.sizes.new_tokens == 0 || run.own_inputs) {
    const auto outputs = session->run(inputs_of(model->info(), run.sizes, golden));
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    return device.memory_in_use();
  }
  GenerateOptions options = session->generation_defaults();
  options.beams = static_cast<int>(run.sizes.beams);
  options.return_sequences = 1;
  options.max_new_tokens = static_cast<int>(run.sizes.new_tokens);
  options.min_new_tokens = 0;
  const auto generated = session->generate(rows_of(run.sizes), options);
  REQUIRE_MESSAGE(generated.ok(), generated.error().message);
  return device.memory_in_use();
}

void check_run(Run run, const DeviceTweaks& tweaks) {
  CAPTURE(run.golden);
  const GoldenCase golden = golden_case(run.golden);
  const auto device = make_test_device(test_device_options(), tweaks);
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  if (run.own_inputs) run.sizes.inputs = golden.pass_inputs();
  const auto needs =
      memory_needs(*device, ModelSource::directory(golden.path("model")), {}, run.sizes);
  REQUIRE_MESSAGE(needs.ok(), needs.error().message);
  CHECK(device->memory_in_use() == 0);
  CHECK(needs->total ==
        needs->weights + needs->arena + needs->cache + needs->tensors + needs->staging);
  CHECK(held_after(*device, run, golden) == needs->total);
  CHECK((needs->cache > 0) == (run.sizes.new_tokens > 0 && !run.own_inputs));
  CHECK(needs->arena_bound > 0);
}

const Run kRuns[] = {
    {"bert-base", {.batch = 3, .tokens = 17}},
    {"bart-base", {.batch = 2, .tokens = 9}},
    {"vit-base", {.batch = 2}},
    {"gpt2-base", {.batch = 2, .tokens = 9}},
    {"gpt2-base", {.batch = 2, .tokens = 9, .new_tokens = 7, .beams = 3}},
    {"llama-gqa", {.batch = 1, .tokens = 1, .new_tokens = 12}},
    {"bart-base", {.batch = 2, .tokens = 11, .new_tokens = 6, .beams = 2}},
    {"t5-gated", {.batch = 1, .tokens = 9, .new_tokens = 5}},
    {"marian-base", {.batch = 1, .tokens = 9, .new_tokens = 5, .beams = 4}},
    {"bert-base", {}, true},
    {"perceiver-bare", {}, true},
    {"perceiver-pictures", {}, true},
    {"gato-acts", {}, true},
    {"wav2vec2-conformer-relative", {}, true},
    {"vits-flows", {.new_tokens = 7}, true},  // 7 frames of 6 samples, as its golden waveform has
};

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a session holds what memory_needs says before") {
    if (!have_test_device()) return;
    for (const Run& run : kRuns) check_run(run, test_device_tweaks());
    DeviceTweaks staged = test_device_tweaks();
    staged.device_memory = DeviceTweaks::DeviceMemory::kStaged;
    check_run(kRuns[0], staged);
    check_run(kRuns[4], staged);
    check_run(kRuns[std::size(kRuns) - 1], staged);
  }

  TEST_CASE("memory_needs refuses sizes and models that it cannot count") {
    if (!have_test_device()) return;
    const auto message = [](const char* name, const SessionSizes& sizes) {
      const auto needs = memory_needs(
          *test_device(), ModelSource::directory(golden_case(name).path("model")), {}, sizes);
      REQUIRE_FALSE(needs.ok());
      return needs.error().message;
    };
    CHECK(message("perceiver-bare", {}).find("give the inputs themselves") != std::string::npos);
    CHECK(message("bert-base", {.batch = 0}).find("batch 0") != std::string::npos);
    CHECK(message("bert-base", {.new_tokens = 5}).find("generates nothing") != std::string::npos);
    CHECK(message("bert-base", {.tokens = 100000}).find("100000") != std::string::npos);
    CHECK(message("gpt2-base", {.tokens = 9, .new_tokens = 100000}).find("100000") !=
          std::string::npos);
  }
}

}  // namespace vkformer::testing
