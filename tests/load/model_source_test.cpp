// Models from a directory, from memory, through a host's reader and in the background are the same.
#include "vkformer/model_source.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/model_pack.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(stream), {}};
  }
  return files;
}

MemoryFiles spans_of(const std::map<std::string, std::string>& files) {
  MemoryFiles spans;
  for (const auto& [name, text] : files) {
    spans[name] = std::as_bytes(std::span(text.data(), text.size()));
  }
  return spans;
}

FileReader reader_of(const std::map<std::string, std::string>& files) {
  FileReader reader;
  reader.size = [&files](const std::string& name) -> std::optional<uint64_t> {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional<uint64_t>(found->second.size());
  };
  reader.read = [&files](const std::string& name, uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), files.at(name).data() + offset, out.size());
    return true;
  };
  return reader;
}

std::vector<std::byte> logits_of(const Model& model, const GoldenCase& golden) {
  auto session = Session::create(model);
  REQUIRE(session.ok());
  const auto outputs = session->run(golden.pass_inputs());
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return outputs->at("logits").bytes;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a model is the same from a directory, memory and a host's reader") {
    if (!have_test_device()) return;
    for (const char* name : {"marian-base", "gpt2-sharded"}) {
      const GoldenCase golden = golden_case(name);
      const auto files = files_of(golden.path("model"));
      const auto direct = Model::load(*test_device(), golden.path("model"));
      REQUIRE_MESSAGE(direct.ok(), direct.error().message);
      const std::vector<std::byte> expected = logits_of(*direct, golden);
      for (const ModelSource& source :
           {ModelSource::memory(spans_of(files)), ModelSource::reader(reader_of(files))}) {
        const auto model = Model::load_from(*test_device(), source);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        CHECK(logits_of(*model, golden) == expected);
      }
    }
  }

  TEST_CASE("a packed model is the same, in a file, an archive, memory and a host's reader") {
    if (!have_test_device()) return;
    const test::TempDir folder;
    for (const char* name : {"marian-base", "gpt2-sharded"}) {
      const GoldenCase golden = golden_case(name);
      const auto direct = Model::load(*test_device(), golden.path("model"));
      REQUIRE_MESSAGE(direct.ok(), direct.error().message);
      const std::vector<std::byte> expected = logits_of(*direct, golden);
      const std::string path = folder.file("m.vkfpack"), archive = folder.file("game.bin");
      const auto info = pack_model(golden.path("model"), path);
      REQUIRE_MESSAGE(info.ok(), info.error().message);
      const std::string pack = files_of(folder.path())["m.vkfpack"];
      CHECK(pack.size() == info->size);
      constexpr size_t kOffset = 12'345;
      std::ofstream(archive, std::ios::binary) << std::string(kOffset, 'x') << pack << "end";
      const std::map<std::string, std::string> alone = {{"model.vkfpack", pack}};
      for (const ModelSource& source :
           {ModelSource::directory(path), ModelSource::pack(path),
            ModelSource::pack(archive, {.offset = kOffset}),
            ModelSource::pack(archive, {.offset = kOffset, .verify = false}),
            ModelSource::memory(spans_of(alone)), ModelSource::reader(reader_of(alone))}) {
        const auto model = Model::load_from(*test_device(), source);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        CHECK(logits_of(*model, golden) == expected);
      }
      const auto missed = Model::load_from(*test_device(), ModelSource::pack(archive));
      REQUIRE_FALSE(missed.ok());
      CHECK(missed.error().message.find("does not begin with VKFPACK1") != std::string::npos);
    }
  }

  TEST_CASE("adapters come from the files that the host hands out, or from disk") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("adapter-lora");
    const auto files_with_adapters = [&] {
      auto files = files_of(golden.path("base"));
      for (const auto& [name, text] : files_of(golden.path("adapter")))
        files["styles/" + name] = text;
      files["style.gguf"] = files_of(golden.path("."))["adapter.gguf"];
      return files;
    }();
    const auto load = [](const ModelSource& source, const std::string& adapter) {
      return Model::load_from(*test_device(), source, {.adapters = {{adapter}}});
    };
    const auto direct = load(ModelSource::directory(golden.path("base")), golden.path("adapter"));
    REQUIRE_MESSAGE(direct.ok(), direct.error().message);
    const std::vector<std::byte> expected = logits_of(*direct, golden);
    const auto plain = Model::load(*test_device(), golden.path("base"));
    REQUIRE(plain.ok());
    CHECK(logits_of(*plain, golden) != expected);
    for (const ModelSource& source : {ModelSource::memory(spans_of(files_with_adapters)),
                                      ModelSource::reader(reader_of(files_with_adapters))}) {
      for (const std::string& adapter :
           {std::string("styles"), std::string("style.gguf"), golden.path("adapter")}) {
        CAPTURE(adapter);
        const auto model = load(source, adapter);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        CHECK(logits_of(*model, golden) == expected);
      }
      const auto missed = load(source, "no_such_style");
      REQUIRE_FALSE(missed.ok());
      CHECK(missed.error().message.find("no_such_style") != std::string::npos);
    }
    // Files on disk have no folders of their own in this sense.
    CHECK_FALSE(load(ModelSource::directory(golden.path("base")), "styles").ok());
  }

  TEST_CASE("loading reports its progress and can be cancelled") {
    if (!have_test_device()) return;
    const std::string directory = golden_case("marian-base").path("model");
    std::vector<LoadProgress> seen;
    ModelOptions options;
    options.progress = [&](const LoadProgress& progress) {
      seen.push_back(progress);
      return true;
    };
    const auto model = Model::load(*test_device(), directory, options);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    REQUIRE(seen.size() > 10);
    for (size_t i = 1; i < seen.size(); ++i) CHECK(seen[i].loaded_bytes > seen[i - 1].loaded_bytes);
    CHECK(seen.back().loaded_bytes <= seen.back().total_bytes);
    options.progress = [](const LoadProgress&) { return false; };
    const auto stopped = Model::load(*test_device(), directory, options);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
  }

  TEST_CASE("a background load gives the same model, and stops when it is asked to") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("marian-base");
    const ModelSource source = ModelSource::directory(golden.path("model"));
    BackgroundLoad load = BackgroundLoad::start(*test_device(), source);
    const auto model = load.wait();
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    CHECK(load.done());
    CHECK(load.progress().loaded_bytes > 0);
    CHECK(load.wait().ok());
    const auto direct = Model::load_from(*test_device(), source);
    CHECK(logits_of(*model, golden) == logits_of(*direct, golden));
    // The first report holds the thread until it has been cancelled.
    std::atomic<bool> cancelled = false;
    ModelOptions options;
    options.progress = [&](const LoadProgress&) {
      while (!cancelled) std::this_thread::yield();
      return true;
    };
    BackgroundLoad stopped = BackgroundLoad::start(*test_device(), source, options);
    CHECK_FALSE(stopped.done());
    stopped.cancel();
    cancelled = true;
    const auto none = stopped.wait();
    REQUIRE_FALSE(none.ok());
    CHECK(none.error().code == ErrorCode::kCancelled);
    // One that is dropped while it runs is cancelled and waited for.
    { const BackgroundLoad dropped = BackgroundLoad::start(*test_device(), source); }
    const auto missing =
        BackgroundLoad::start(*test_device(), ModelSource::directory("/nowhere")).wait();
    CHECK_FALSE(missing.ok());
  }
}

}  // namespace vkformer::testing
