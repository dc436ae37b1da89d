// A model directory cannot make the program read outside it: links, names with "..", absolute
// paths.
#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "checkpoint/temp_dir.h"
#include "vkformer/model.h"
#include "vkformer/picture.h"
#include "vkformer/tokenizer.h"

using namespace vkformer;
using vkformer::test::TempDir;

namespace {

namespace fs = std::filesystem;

// False where the system lets nobody make links.
bool link(const std::string& to, const std::string& at) {
  std::error_code code;
  fs::create_symlink(to, at, code);
  return !code;
}

void check_refused(const Error& error, const std::string& file) {
  CHECK(error.code == ErrorCode::kInvalidFile);
  CHECK_MESSAGE(error.message.find(file) != std::string::npos, error.message);
  CHECK_MESSAGE(error.message.find("not inside the model's directory") != std::string::npos,
                error.message);
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("links that lead out of a model directory are refused") {
    const TempDir outside, model;
    outside.write("secret.json", R"({"model_type": "bert"})");
    fs::create_directory(outside.file("folder"));
    outside.write("folder/config.json", "{}");
    if (!link(outside.file("secret.json"), model.file("config.json"))) return;
    REQUIRE(link(outside.file("secret.json"), model.file("model.safetensors")));
    REQUIRE(link(outside.file("secret.json"), model.file("tokenizer.json")));
    REQUIRE(link(outside.file("secret.json"), model.file("preprocessor_config.json")));
    REQUIRE(link(outside.file("folder"), model.file("1_Pooling")));
    const auto inspected = inspect_model(model.path());
    REQUIRE_FALSE(inspected.ok());
    check_refused(inspected.error(), "config.json");
    const auto checkpoint = Checkpoint::open(model.path());
    REQUIRE_FALSE(checkpoint.ok());
    check_refused(checkpoint.error(), "model.safetensors");
    const auto tokenizer = Tokenizer::load(model.path());
    REQUIRE_FALSE(tokenizer.ok());
    check_refused(tokenizer.error(), "tokenizer.json");
    const auto processor = PictureProcessor::load(model.path());
    REQUIRE_FALSE(processor.ok());
    check_refused(processor.error(), "preprocessor_config.json");
    const auto files = make_directory_store(model.path());
    const auto inner = files->open("1_Pooling/config.json");
    REQUIRE_FALSE(inner.ok());
    check_refused(inner.error(), "1_Pooling/config.json");
  }

  TEST_CASE("links inside a directory, to a directory and in the hub's cache are followed") {
    const TempDir cache;
    const std::string repo = cache.file("models--a--b");
    fs::create_directories(repo + "/blobs");
    fs::create_directories(repo + "/snapshots/0123");
    fs::create_directories(repo + "/blobs-of-others");
    cache.write("models--a--b/blobs/77", R"({"a": 1})");
    cache.write("models--a--b/blobs-of-others/77", R"({"a": 1})");
    cache.write("models--a--b/snapshots/0123/real.json", R"({"a": 1})");
    const std::string snapshot = repo + "/snapshots/0123";
    if (!link("../../blobs/77", snapshot + "/config.json")) return;
    REQUIRE(link("real.json", snapshot + "/inner.json"));
    REQUIRE(link("../../blobs-of-others/77", snapshot + "/other.json"));
    REQUIRE(link("../../../../../../../../etc/passwd", snapshot + "/passwd"));
    REQUIRE(link(snapshot, cache.file("latest")));
    for (const std::string& directory : {snapshot, cache.file("latest"), snapshot + "/"}) {
      CAPTURE(directory);
      const auto files = make_directory_store(directory);
      CHECK(files->open("config.json").ok());
      CHECK(files->open("real.json").ok());
      CHECK(files->open("inner.json").ok());
      for (const char* name : {"other.json", "passwd"}) {
        const auto opened = files->open(name);
        REQUIRE_FALSE(opened.ok());
        check_refused(opened.error(), name);
      }
      const auto missing = files->open("missing.json");
      REQUIRE_FALSE(missing.ok());
      CHECK(missing.error().code == ErrorCode::kNotFound);
    }
    // Without the hub's folders, a folder beside is outside.
    fs::rename(repo + "/snapshots", repo + "/revisions");
    CHECK_FALSE(make_directory_store(repo + "/revisions/0123")->open("config.json").ok());
  }
}
