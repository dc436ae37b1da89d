// Pipelines that are made while weights are loaded are those that the first session needs.
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

// A separate device: the test device has most pipelines.
Result<Device> fresh_device(uint32_t threads, std::vector<std::string>* said = nullptr) {
  DeviceOptions options = test_device_options();
  options.compile_threads = threads;
  if (said != nullptr) {
    options.log = [said](LogLevel, const std::string& text) { said->push_back(text); };
  }
  return make_test_device(options, test_device_tweaks());
}

size_t pipelines_of(const Device& device) {
  return vulkan_of(device)->impl().pipelines->made();
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a model that knows its first use has the pipelines of a forward pass") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bert-base");
    const TensorMap inputs = golden.pass_inputs();
    for (const uint32_t threads : {0u, 2u}) {
      const auto device = fresh_device(threads);
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      const size_t before = pipelines_of(*device);
      ModelOptions options;
      options.first_use = SessionSizes{.inputs = inputs};
      const auto model = Model::load(*device, golden.path("model"), options);
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      const size_t loaded = pipelines_of(*device);
      CHECK(loaded > before);
      auto session = Session::create(*model);
      REQUIRE(session.ok());
      REQUIRE(session->run(inputs).ok());
      CHECK(pipelines_of(*device) == loaded);
    }
  }

  TEST_CASE("the same of a generation, by the model's own settings and by stated beams") {
    if (!have_test_device()) return;
    for (const char* name : {"marian-base", "gpt2-base", "bart-base"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      const std::vector<std::vector<int64_t>> prompts(2, std::vector<int64_t>(5, 3));
      for (const int beams : {0, 1, 3}) {
        CAPTURE(beams);
        const auto device = fresh_device(1);
        REQUIRE_MESSAGE(device.ok(), device.error().message);
        ModelOptions options;
        options.first_use =
            SessionSizes{.batch = 2, .tokens = 8, .new_tokens = 4, .beams = beams, .inputs = {}};
        const auto model = Model::load(*device, golden.path("model"), options);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        const size_t loaded = pipelines_of(*device);
        auto session = Session::create(*model);
        REQUIRE(session.ok());
        GenerateOptions settings = session->generation_defaults();
        if (beams > 0) {
          const GenerateOptions own = settings;
          settings = {};
          settings.beams = beams;
          settings.eos = own.eos;
          settings.decoder_start = own.decoder_start;
          settings.decoder_prompt = own.decoder_prompt;
        }
        settings.max_new_tokens = 4;
        const auto generated = session->generate(prompts, settings);
        REQUIRE_MESSAGE(generated.ok(), generated.error().message);
        CHECK(pipelines_of(*device) == loaded);
      }
    }
  }

  TEST_CASE("a first use that the model cannot run is logged, and the model loads") {
    if (!have_test_device()) return;
    std::vector<std::string> said;
    const auto device = fresh_device(1, &said);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    const std::string directory = golden_case("bert-base").path("model");
    for (const SessionSizes& sizes :
         {SessionSizes{.batch = 0, .inputs = {}}, SessionSizes{.tokens = 1 << 19, .inputs = {}},
          SessionSizes{.new_tokens = 3, .inputs = {}}}) {
      said.clear();
      ModelOptions options;
      options.first_use = sizes;
      CHECK(Model::load(*device, directory, options).ok());
      REQUIRE(said.size() == 1);
      CHECK_MESSAGE(said[0].starts_with("[first_use] No pipelines are made ahead: ["), said[0]);
    }
  }

  TEST_CASE("loading that is cancelled stops making pipelines") {
    if (!have_test_device()) return;
    const auto device = fresh_device(1);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    ModelOptions options;
    options.first_use = SessionSizes{};
    options.progress = [](const LoadProgress&) { return false; };
    const auto stopped = Model::load(*device, golden_case("bert-base").path("model"), options);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
  }

  TEST_CASE("loading says how many pipelines are made, and stops there when asked to") {
    if (!have_test_device()) return;
    const std::string directory = golden_case("bert-base").path("model");
    for (const uint32_t threads : {0u, 2u}) {
      CAPTURE(threads);
      const auto device = fresh_device(threads);
      REQUIRE_MESSAGE(device.ok(), device.error().message);
      ModelOptions options;
      options.first_use = SessionSizes{};
      LoadProgress last;
      bool ordered = true;
      options.progress = [&](const LoadProgress& now) {
        ordered = ordered && now.made_pipelines >= last.made_pipelines &&
                  now.made_pipelines <= now.total_pipelines &&
                  (now.total_pipelines == 0 || now.loaded_bytes == now.total_bytes);
        last = now;
        return true;
      };
      REQUIRE(Model::load(*device, directory, options).ok());
      CHECK(ordered);
      CHECK(last.total_pipelines > 0);
      CHECK(last.made_pipelines == last.total_pipelines);

      const auto fresh = fresh_device(threads);
      REQUIRE_MESSAGE(fresh.ok(), fresh.error().message);
      options.progress = [](const LoadProgress& now) { return now.total_pipelines == 0; };
      const auto stopped = Model::load(*fresh, directory, options);
      REQUIRE_FALSE(stopped.ok());
      CHECK(stopped.error().code == ErrorCode::kCancelled);
      CHECK_MESSAGE(stopped.error().message.ends_with(" pipelines of [first_use]"),
                    stopped.error().message);
    }
  }
}

}  // namespace vkformer::testing
