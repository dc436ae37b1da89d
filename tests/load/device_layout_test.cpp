// Packs whose weights lie in them as GPUs read them.
#include <doctest/doctest.h>

#include "checkpoint/pack_file.h"
#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/model_pack.h"
#include "vkformer/session.h"
#include "weights/device_weights.h"

namespace vkformer::testing {
namespace {

std::string packed_so(const test::TempDir& directory, const std::string& model,
                      std::optional<WeightFormat> weights = std::nullopt) {
  const std::string path = directory.file("model.vkfpack");
  PackOptions options;
  options.device_layout = true;
  options.weights = weights;
  const auto info = pack_model(model, path, options);
  REQUIRE_MESSAGE(info.ok(), info.error().message);
  for (const PackInfo::File& file : info->files) {
    const bool whole = file.name.ends_with(".safetensors");
    CHECK_MESSAGE((!whole || file.name.find('/') != std::string::npos), file.name);
  }
  return path;
}

TensorMap run_once(const std::string& path, const TensorMap& inputs, const ModelOptions& options) {
  const auto model = Model::load(*test_device(), path, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  auto outputs = session->run(inputs);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return std::move(*outputs);
}

void check_refused(const Result<Model>& loaded, ErrorCode code, const std::string& part) {
  REQUIRE_FALSE(loaded.ok());
  CHECK(loaded.error().code == code);
  CHECK_MESSAGE(loaded.error().message.find(part) != std::string::npos, loaded.error().message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("device layout: a model of every family is packed and read again") {
    // Packing reads the pack back: what loading needs is there, and weights are found.
    for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
      CAPTURE(golden.name);
      const test::TempDir directory;
      const std::string path = packed_so(directory, golden.path("model"));
      CHECK(read_pack_info(path).ok());
    }
  }

  TEST_CASE("device layout: what a model needs decides, whatever the index says") {
    const test::TempDir directory;
    const std::string path = packed_so(directory, golden_case("llama-bare").path("model"));
    const auto store = make_pack_store(path, 0, true);
    CHECK(store->has("model.safetensors"));
    CHECK_FALSE(store->has("other.safetensors"));
    std::vector<PackedWeight> weights(1);
    weights[0].row.name = "unknown";
    const auto opened = DeviceWeights::open(*store, weights);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(opened.error().message.find("[unknown]") != std::string::npos,
                  opened.error().message);
    const Status values = check_stores_values(*store, "[test]");
    REQUIRE_FALSE(values.ok());
    CHECK(values.error().code == ErrorCode::kUnsupported);
    CHECK(check_stores_values(*make_directory_store(golden_case("llama-bare").path("model")), "")
              .ok());
  }

  TEST_CASE("device layout: GGUF files and adapters need a format of weights") {
    const test::TempDir directory;
    PackOptions options;
    options.device_layout = true;
    options.adapters.push_back({"somewhere", 1});
    const auto packed =
        pack_model(golden_case("llama-bare").path("model"), directory.file("p"), options);
    REQUIRE_FALSE(packed.ok());
    CHECK(packed.error().code == ErrorCode::kUnsupported);
    CHECK_MESSAGE(packed.error().message.find("--weights") != std::string::npos,
                  packed.error().message);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("device layout: results have the bits of the directory's, in every format") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-bare", "bert-base", "t5-relu", "qwen3_moe-bare", "swin-base"}) {
      const std::string folder = golden_folder() + "/" + name;
      if (!std::filesystem::exists(folder)) continue;
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      for (const auto& weights : {std::optional<WeightFormat>{}, std::optional(WeightFormat::kF16),
                                  std::optional(WeightFormat::kQ8)}) {
        const test::TempDir directory;
        const std::string path = packed_so(directory, golden.path("model"), weights);
        ModelOptions options;
        options.weights = weights.value_or(WeightFormat::kAsStored);
        const TensorMap whole = run_once(golden.path("model"), golden.pass_inputs(), options);
        const TensorMap packed = run_once(path, golden.pass_inputs(), {});
        REQUIRE(packed.size() == whole.size());
        for (const auto& [key, tensor] : packed) {
          CHECK_MESSAGE(tensor.bytes == whole.at(key).bytes, key);
        }
      }
    }
  }

  TEST_CASE("device layout: other formats, adapters and smaller slices are refused") {
    if (!have_test_device()) return;
    const test::TempDir directory;
    const std::string path = packed_so(directory, golden_case("llama-bare").path("model"));
    ModelOptions options;
    options.weights = WeightFormat::kQ8;
    check_refused(Model::load(*test_device(), path, options), ErrorCode::kUnsupported, "q8");
    options = {};
    options.adapters.push_back({"somewhere", 1});
    check_refused(Model::load(*test_device(), path, options), ErrorCode::kUnsupported, "adapter");
    options = {};
    options.most_weight_bytes = 4096;
    check_refused(Model::load(*test_device(), path, options), ErrorCode::kUnsupported, "slice");
  }
}

}  // namespace vkformer::testing
