// The cache file: what it was made with, exactly, or a miss.
#include "device_files/pipeline_cache_file.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;
using namespace vkformer::fill_plan;

namespace {

namespace fs = std::filesystem;

// A directory of this test's own, removed at the end.
struct TempDirectory {
  fs::path path;
  explicit TempDirectory(const char* name) {
    const auto unique = reinterpret_cast<uintptr_t>(this);
    path = fs::temp_directory_path() / (std::string("vkformer_") + name + std::to_string(unique));
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~TempDirectory() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("of a pack those caches are read that are of the device, and none if it is damaged") {
    const TempDirectory directory("pack");
    const PipelineCacheKey key{1, 2, 3, {4, 5}, 6};
    PipelineCacheKey other = key;
    other.driver_version = 9;
    const std::string path = (directory.path / "one").string();
    const std::string pack = (directory.path / "pack").string();
    const auto file_of = [&](const PipelineCacheKey& of, size_t bytes, int value) {
      REQUIRE(write_pipeline_cache(path, of, std::vector<std::byte>(bytes, std::byte(value))));
      return read_file(path);
    };
    const std::string whole =
        file_of(other, 10, 1) + file_of(key, 20, 2) + file_of(other, 0, 3) + file_of(key, 30, 4);
    CHECK_FALSE(read_pipeline_pack(pack, key));
    write_file(pack, whole);
    const auto found = read_pipeline_pack(pack, key);
    REQUIRE(found);
    REQUIRE(found->size() == 2);
    CHECK((*found)[0] == std::vector<std::byte>(20, std::byte{2}));
    CHECK((*found)[1] == std::vector<std::byte>(30, std::byte{4}));
    write_file(pack, "");
    CHECK(read_pipeline_pack(pack, key)->empty());
    const size_t ends[] = {0, 64 + 10, 2 * 64 + 30, 3 * 64 + 30, whole.size()};
    for (size_t cut = 0; cut < whole.size(); ++cut) {
      write_file(pack, whole.substr(0, cut));
      const bool between = std::find(std::begin(ends), std::end(ends), cut) != std::end(ends);
      CHECK(read_pipeline_pack(pack, key).has_value() == between);
    }
    std::string damaged = whole;
    damaged.back() = 'x';
    write_file(pack, damaged);
    CHECK_FALSE(read_pipeline_pack(pack, key));
  }

  TEST_CASE("a cache file is read back only as it was written") {
    const TempDirectory directory("cache");
    PipelineCacheKey key{1, 2, 3, {4, 5}, 6};
    const std::string path = pipeline_cache_path(directory.path.string(), key);
    CHECK_FALSE(read_pipeline_cache(path, key));
    const std::vector<std::byte> data(1000, std::byte{0x5a});
    REQUIRE(write_pipeline_cache(path, key, data));
    CHECK(read_pipeline_cache(path, key) == data);
    for (auto change :
         {+[](PipelineCacheKey& k) { ++k.vendor; }, +[](PipelineCacheKey& k) { ++k.device; },
          +[](PipelineCacheKey& k) { ++k.driver_version; },
          +[](PipelineCacheKey& k) { ++k.uuid[15]; }, +[](PipelineCacheKey& k) { ++k.kernels; }}) {
      PipelineCacheKey other = key;
      change(other);
      CHECK_FALSE(read_pipeline_cache(path, other));
    }
    const std::string good = read_file(path);
    for (size_t at = 0; at < good.size(); at += 7) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      write_file(path, bad);
      CHECK_FALSE(read_pipeline_cache(path, key));
    }
    for (size_t length : {size_t{0}, size_t{10}, size_t{63}, size_t{64}, good.size() - 1}) {
      write_file(path, good.substr(0, length));
      CHECK_FALSE(read_pipeline_cache(path, key));
    }
    write_file(path, good + "x");
    CHECK_FALSE(read_pipeline_cache(path, key));
    write_file(path, good);
    CHECK(read_pipeline_cache(path, key) == data);
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(directory.path)) {
      (void)entry;
      ++files;
    }
    CHECK(files == 1);  // no partial files stay
  }

  TEST_CASE("a cache that cannot be written is no failure") {
    const TempDirectory directory("blocked");
    const std::string blocker = (directory.path / "file").string();
    write_file(blocker, "in the way");
    const PipelineCacheKey key;
    CHECK_FALSE(write_pipeline_cache(pipeline_cache_path(blocker, key), key, {}));
    CHECK_FALSE(pipeline_cache_directory("none"));
    CHECK(pipeline_cache_directory("here") == "here");
    CHECK(kernel_list_hash() == kernel_list_hash());
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("a second device finds the pipelines of the first, a damaged file is replaced") {
    if (!have_test_device()) return;
    const TempDirectory directory("pipelines");
    DeviceOptions options = test_device_options();
    options.cache_directory = (directory.path / "deep" / "down").string();
    std::string path;
    auto use_device = [&](bool expected_hit) {
      auto made = make_test_device(options, test_device_tweaks());
      REQUIRE(made);
      const auto device = vulkan_of(*made);
      path = device->impl().cache_stats.path;
      CHECK(device->impl().cache_stats.hit == expected_hit);
      Plan plan;
      add_buffer(plan, "words", 64);
      plan.dispatches = {fill(0, 64, 1)};
      const Buffer buffer = make_words(*device, 64, "words");
      RecordingInputs inputs;
      inputs.memory = {whole(buffer)};
      const Recording recording = record(device, plan, inputs);
      run(*device, recording);
      CHECK(mismatches(read_words(*device, buffer, 64), 1) == 0);
    };
    use_device(false);
    use_device(true);
    const std::string good = read_file(path);
    REQUIRE(good.size() > 64);
    write_file(path, good.substr(0, good.size() / 2));
    use_device(false);
    use_device(true);
    SUBCASE("a pack of it serves a device without a directory") {
      options.cache_directory = "none";
      options.pipeline_pack = (directory.path / "game.pack").string();
      write_file(options.pipeline_pack, read_file(path) + read_file(path));
      std::vector<std::string> said;
      options.log = [&](LogLevel, const std::string& text) { said.push_back(text); };
      const auto says = [&](const char* part) {
        return std::any_of(said.begin(), said.end(), [&](const std::string& text) {
          return text.find(part) != std::string::npos;
        });
      };
      REQUIRE(make_test_device(options, test_device_tweaks()));
      CHECK(says("2 caches of"));
      write_file(options.pipeline_pack, "nothing of the kind");
      REQUIRE(make_test_device(options, test_device_tweaks()));
      CHECK(says("not there or damaged"));
    }
    SUBCASE("an unwritable directory is counted, not reported") {
      const std::string blocker = (directory.path / "file").string();
      write_file(blocker, "in the way");
      options.cache_directory = blocker;
      auto made = make_test_device(options, test_device_tweaks());
      REQUIRE(made);
      const uint32_t spec[] = {64};
      REQUIRE(vulkan_of(*made)->impl().pipelines->get(KernelId::fill_words__u32, spec));
      vulkan_of(*made)->save_pipeline_cache();
      CHECK(vulkan_of(*made)->impl().cache_stats.write_failures == 1);
    }
  }
}
