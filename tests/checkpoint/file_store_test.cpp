#include "checkpoint/file_store.h"

#include <doctest/doctest.h>

#include <cstring>

#include "checkpoint/checkpoint.h"
#include "checkpoint/json_config.h"
#include "checkpoint/safetensors_samples.h"
#include "checkpoint/temp_dir.h"

namespace vkformer::testing {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A reader over a map, that fails from byte `fail_from` on.
FileReader reader_over(const std::map<std::string, std::string>& files, uint64_t fail_from) {
  FileReader reader;
  reader.size = [&files](const std::string& name) -> std::optional<uint64_t> {
    const auto found = files.find(name);
    if (found == files.end()) return std::nullopt;
    return found->second.size();
  };
  reader.read = [&files, fail_from](const std::string& name, uint64_t offset,
                                    std::span<std::byte> out) {
    if (offset + out.size() > fail_from) return false;
    std::memcpy(out.data(), files.at(name).data() + offset, out.size());
    return true;
  };
  return reader;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a memory store gives the bytes it was made of") {
    const std::string config = R"({"model_type": "bert"})";
    const auto store = make_memory_store({{"config.json", bytes_of(config)}}, "archive");
    CHECK(store->has("config.json"));
    CHECK_FALSE(store->has("tokenizer.json"));
    const auto read = JsonConfig::load_from(*store, "config.json");
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(read->get_string("model_type").value() == "bert");
    CHECK(read->where() == "archive/config.json");
    const auto missing = store->open("tokenizer.json");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(missing.error().message.find("archive/tokenizer.json") != std::string::npos);
  }

  TEST_CASE("a host's reader is asked for whole files, and its failures are told") {
    const std::map<std::string, std::string> files = {{"config.json", R"({"a": 1})"},
                                                      {"large", std::string(40u << 20, 'x')}};
    const auto store = make_reader_store(reader_over(files, ~uint64_t{0}), "host");
    const auto large = store->open("large");
    REQUIRE(large.ok());
    CHECK(large->bytes().size() == 40u << 20);
    CHECK(large->bytes().back() == std::byte{'x'});
    CHECK_FALSE(store->open("other").ok());
    const auto failing = make_reader_store(reader_over(files, 20u << 20), "host");
    const auto cut = failing->open("large");
    REQUIRE_FALSE(cut.ok());
    CHECK(cut.error().message.find("at byte 16777216 of 41943040") != std::string::npos);
    const auto empty = make_reader_store({}, "host");
    CHECK_FALSE(empty->has("config.json"));
    CHECK(empty->open("config.json").error().code == ErrorCode::kInvalidArgument);
    FileReader absurd = reader_over(files, ~uint64_t{0});
    absurd.size = [](const std::string&) { return std::optional<uint64_t>(~uint64_t{0}); };
    CHECK(make_reader_store(absurd, "host")->open("config.json").error().code ==
          ErrorCode::kOutOfMemory);
  }

  TEST_CASE("a directory store lists its safetensors files and opens nested ones") {
    const test::TempDir directory;
    directory.write("one.safetensors", "x");
    directory.write("two.txt", "y");
    const auto store = make_directory_store(directory.path());
    const auto names = store->safetensors_names();
    REQUIRE(names.ok());
    CHECK(*names == std::vector<std::string>{"one.safetensors"});
    CHECK(store->has("two.txt"));
    CHECK_FALSE(store->has("three"));
    CHECK(store->open("two.txt")->bytes().size() == 1);
    CHECK_FALSE(make_directory_store(directory.path() + "/none")->safetensors_names().ok());
  }

  TEST_CASE("names that leave a model's directory are refused") {
    for (const char* name : {"", "/etc/passwd", "../config.json", "a/../../b", "c:\\x", "a\\b"}) {
      CAPTURE(name);
      CHECK_FALSE(check_inner_name(name, "modules.json").ok());
    }
    CHECK_FALSE(check_inner_name(std::string("a\0b", 3), "modules.json").ok());
    CHECK(check_inner_name("1_Pooling/config.json", "modules.json").ok());
  }

  TEST_CASE("a checkpoint without the usual names needs a store that can list") {
    const std::map<std::string, std::string> files = {{"weights.safetensors", "x"}};
    const auto store = make_reader_store(reader_over(files, ~uint64_t{0}), "host");
    const auto opened = Checkpoint::open_store(*store);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().message.find("model.safetensors") != std::string::npos);
  }
}

}  // namespace vkformer::testing
