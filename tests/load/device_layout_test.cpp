// Packs whose weights lie in them as GPUs read them.
#include <doctest/doctest.h>

#include <fstream>

#include "checkpoint/pack_file.h"
#include "checkpoint/temp_dir.h"
#include "load/loaded_model.h"
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

  TEST_CASE("device layout: runs of pages hold their weights and stay inside the file") {
    const test::TempDir directory;
    const std::string path = packed_so(directory, golden_case("llama-bare").path("model"));
    const auto read = read_model_weights({}, *make_pack_store(path, 0, true), {});
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    const DeviceWeights& packed = *read->packed;
    const size_t count = read->weights.size();
    const std::span<const std::byte> pages = packed.file()->pages();
    if (pages.empty()) return;  // a system without maps
    constexpr uint64_t kPage = 4096;
    std::vector<bool> wanted(count, true);
    wanted[count / 2] = false;
    for (const uint64_t most : {uint64_t{1}, uint64_t{3} * kPage, uint64_t{1} << 30}) {
      CAPTURE(most);
      std::vector<int> times(count);
      for (const PageRun& run : packed.page_runs(wanted, kPage, most)) {
        CHECK(run.pages.size() % kPage == 0);
        CHECK(reinterpret_cast<uintptr_t>(run.pages.data()) % kPage == 0);
        CHECK(run.pages.data() >= pages.data());
        CHECK(run.pages.data() + run.pages.size() <= pages.data() + pages.size());
        CHECK((run.pages.size() <= most || run.end == run.first + 1));
        for (size_t i = run.first; i < run.end; ++i) {
          ++times[i];
          const auto bytes = packed.bytes_of(i);
          CHECK(bytes.data() >= run.pages.data());
          CHECK(bytes.data() + bytes.size() <= run.pages.data() + run.pages.size());
        }
      }
      for (size_t i = 0; i < count; ++i) CHECK(times[i] == (wanted[i] ? 1 : 0));
    }
    CHECK(packed.page_runs(wanted, 0, kPage).empty());
    // Coarser than the map, whose first or last page such a run would leave.
    CHECK(packed.page_runs(wanted, uint64_t{1} << 40, uint64_t{1} << 50).empty());
  }

  TEST_CASE("device layout: adapters need a format of weights") {
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
  TEST_CASE("device layout: a GGUF file keeps its types, and its results their bits") {
    if (!have_test_device()) return;
    for (const char* name : {"gguf-mixed-types", "gguf-llama", "gguf-gemma3", "gguf-phi3",
                             "gguf-qwen3moe", "gguf-gpt-oss", "gguf-t5", "gguf-bert"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      const std::string model = golden.path("model/model.gguf");
      const test::TempDir directory;
      const std::string path = packed_so(directory, model);
      const auto pack = read_pack_info(path);
      REQUIRE_MESSAGE(pack.ok(), pack.error().message);
      for (const PackInfo::File& file : pack->files) CHECK(file.name != "model.gguf");
      const TensorMap whole = run_once(model, golden.pass_inputs(), {});
      const TensorMap packed = run_once(path, golden.pass_inputs(), {});
      REQUIRE(packed.size() == whole.size());
      for (const auto& [key, tensor] : packed) {
        CHECK_MESSAGE(tensor.bytes == whole.at(key).bytes, key);
      }
    }
  }

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

  TEST_CASE("device layout: weights in the file's pages give the bits of copies") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("llama-bare");
    const test::TempDir directory;
    const std::string packed = packed_so(directory, golden.path("model"));
    const TensorMap expected = run_once(golden.path("model"), golden.pass_inputs(), {});
    // In an archive: at a place whose pages are the pack's, at one whose weights can be bound, at
    // one where they cannot.
    for (const size_t offset : {size_t{0}, size_t{4096}, size_t{256}, size_t{100}}) {
      CAPTURE(offset);
      const std::string archive = directory.file("archive");
      std::ofstream(archive, std::ios::binary)
          << std::string(offset, 'x') << std::ifstream(packed, std::ios::binary).rdbuf() << "end";
      const ModelSource source = ModelSource::pack(archive, {.offset = offset});
      for (const bool copy : {false, true}) {
        CAPTURE(copy);
        ModelOptions options;
        options.copy_weights = copy;
        const uint64_t before = test_device()->memory_in_use();
        const auto model = Model::load_from(*test_device(), source, options);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        const uint64_t grown = test_device()->memory_in_use() - before;
        // Whether a device takes the pages is its own affair; what it takes needs no other memory.
        if (model->host_weight_bytes() > 0) {
          CHECK_FALSE(copy);
          CHECK(offset % 256 == 0);
          CHECK(model->host_weight_bytes() == model->weight_bytes());
          CHECK(grown == 0);
          const auto needs = memory_needs(*test_device(), source, options, {});
          REQUIRE_MESSAGE(needs.ok(), needs.error().message);
          CHECK(needs->weights == 0);
        } else {
          CHECK(grown >= model->weight_bytes());
        }
        auto session = Session::create(*model);
        REQUIRE_MESSAGE(session.ok(), session.error().message);
        const auto outputs = session->run(golden.pass_inputs());
        REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
        for (const auto& [key, tensor] : *outputs) {
          CHECK_MESSAGE(tensor.bytes == expected.at(key).bytes, key);
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
