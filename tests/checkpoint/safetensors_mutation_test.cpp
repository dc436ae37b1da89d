// Valid files, damaged at random but in the same way every time: opening them must neither crash
// nor show a byte outside the file. The sanitizers turn silent damage into failures here.
#include <cstring>
#include <random>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/json_config.h"
#include "checkpoint/safetensors_samples.h"
#include "checkpoint/temp_dir.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

constexpr int kInMemory = 20000;
constexpr int kOnDisk = 2000;
constexpr int kJson = 10000;

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  texts.push_back(file_text("{}", 0));
  texts.push_back(file_text(R"({"__metadata__":{"format":"pt"},)"
                            R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                            R"("b":{"dtype":"I8","shape":[],"data_offsets":[24,25]},)"
                            R"("c":{"dtype":"F16","shape":[0,7],"data_offsets":[25,25]}})",
                            25));
  const TempDir dir;
  TensorMap tensors;
  for (const DType dtype : kEveryDType) tensors[dtype_name(dtype)] = patterned(dtype, {2, 2});
  REQUIRE(write_safetensors(dir.file("x"), tensors).ok());
  const auto file = MappedFile::open(dir.file("x"));
  REQUIRE(file.ok());
  texts.emplace_back(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  return texts;
}

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const uint32_t rounds = 1 + below(4);
    for (uint32_t i = 0; i < rounds; ++i) mutate_once(text);
    return text;
  }

  std::string pick(const std::vector<std::string>& texts) {
    return texts[below(static_cast<uint32_t>(texts.size()))];
  }

 private:
  uint32_t below(uint32_t limit) { return limit == 0 ? 0 : random_() % limit; }
  size_t position(const std::string& text) { return below(static_cast<uint32_t>(text.size())); }

  void mutate_once(std::string& text) {
    switch (below(8)) {
      case 0:
      case 1:
        if (!text.empty()) text[position(text)] ^= static_cast<char>(1u << below(8));
        break;
      case 2:
        text.resize(position(text));
        break;
      case 3:
        change_length(text);
        break;
      case 4:
        splice(text);
        break;
      case 5:
        change_digit(text);
        break;
      case 6:
        repeat_part(text);
        break;
      default:
        text.append(below(40), static_cast<char>(below(256)));
        break;
    }
  }

  void change_length(std::string& text) {
    if (text.size() < 8) return;
    uint64_t length = 0;
    std::memcpy(&length, text.data(), 8);
    const uint64_t choices[] = {
        0,           1,           length - 1, length + 1, text.size() - 8,
        text.size(), 100'000'000, ~0ull,      ~0ull - 7,  uint64_t{1} << 63};
    length = choices[below(std::size(choices))];
    std::memcpy(text.data(), &length, 8);
  }

  // Inserts JSON of a kind that parsers trip over, and lets the length follow so that it is read.
  void splice(std::string& text) {
    static constexpr const char* kParts[] = {
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "-1",
        "1e999",
        "\\u0000",
        "\"shape\":[",
        "[[[[[[[[",
        "\"dtype\":\"F64\",",
        "\"data_offsets\":[0,18446744073709551615],",
        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},",
        "9223372036854775807,",
        "\"__metadata__\":{},",
        "0,"};
    const std::string part = kParts[below(std::size(kParts))];
    if (text.size() < 8) return;
    text.insert(8 + below(static_cast<uint32_t>(text.size() - 7)), part);
    uint64_t length = 0;
    std::memcpy(&length, text.data(), 8);
    length += part.size();
    std::memcpy(text.data(), &length, 8);
  }

  void change_digit(std::string& text) {
    for (int attempt = 0; attempt < 50 && !text.empty(); ++attempt) {
      char& c = text[position(text)];
      if (c < '0' || c > '9') continue;
      c = static_cast<char>('0' + below(10));
      return;
    }
  }

  void repeat_part(std::string& text) {
    const size_t from = position(text);
    const std::string part = text.substr(from, below(60));
    text.insert(position(text), part);
  }

  std::mt19937 random_;
};

// Reads every byte that the views show. Returns how many, or fails.
size_t check_views(const SafetensorsFile& file) {
  size_t read = 0;
  unsigned sum = 0;
  const std::byte* begin = file.bytes().data();
  const std::byte* end = begin + file.bytes().size();
  for (const auto& [name, view] : file.tensors()) {
    REQUIRE(view.bytes.data() >= begin);
    REQUIRE(view.bytes.data() + view.bytes.size() <= end);
    const int64_t count = element_count(view.shape);
    REQUIRE(count >= 0);
    REQUIRE(static_cast<uint64_t>(count) * dtype_size(view.dtype) == view.bytes.size());
    for (const std::byte b : view.bytes) sum += static_cast<unsigned>(b);
    read += view.bytes.size();
  }
  REQUIRE(sum <= read * 255);
  return read;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("safetensors: damaged bytes in memory never crash and never show what is outside") {
    const std::vector<std::string> originals = seeds();
    Mutator mutator(20240601);
    int accepted = 0;
    for (int i = 0; i < kInMemory; ++i) {
      const std::string text = mutator.mutate(mutator.pick(originals));
      const auto file = SafetensorsFile::from_bytes(to_bytes(text), "damaged");
      if (file.ok()) {
        ++accepted;
        REQUIRE(check_views(*file) <= text.size());
      } else {
        REQUIRE(contains(file.error().message, "[damaged]"));
      }
    }
    // Both outcomes happen, or the mutations are too weak or too strong to test anything.
    CHECK(accepted > kInMemory / 100);
    CHECK(accepted < kInMemory / 2);
  }

  TEST_CASE("checkpoint: damaged files on disk never crash and never show what is outside") {
    const TempDir dir;
    const std::vector<std::string> originals = seeds();
    Mutator mutator(7);
    int accepted = 0;
    for (int i = 0; i < kOnDisk; ++i) {
      const std::string path =
          dir.write("model.safetensors", mutator.mutate(mutator.pick(originals)));
      const auto file = SafetensorsFile::open(path);
      const auto checkpoint = Checkpoint::open(dir.path());
      REQUIRE(file.ok() == checkpoint.ok());
      if (!file.ok()) {
        REQUIRE(contains(file.error().message, path));
        continue;
      }
      ++accepted;
      check_views(*file);
      REQUIRE(checkpoint->names().size() == file->tensors().size());
    }
    CHECK(accepted > 0);
    CHECK(accepted < kOnDisk);
  }

  TEST_CASE("json_config: damaged text never crashes") {
    const std::vector<std::string> originals = {
        R"(........{"a": 1, "b": [1, 2, [3]], "c": {"d": {"e": "f"}}, "g": 1.5e3, "h": null})",
        R"(........{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}, "a": true})"};
    Mutator mutator(99);
    int accepted = 0;
    for (int i = 0; i < kJson; ++i) {
      const std::string text = mutator.mutate(mutator.pick(originals));
      const auto config = JsonConfig::parse(
          std::string_view(text).substr(std::min<size_t>(8, text.size())), "damaged");
      if (!config.ok()) {
        REQUIRE(contains(config.error().message, "[damaged]"));
        continue;
      }
      ++accepted;
      for (const std::string& key : config->keys()) {
        REQUIRE(config->has(key));
        REQUIRE(config->get_int(key).ok() == config->get_int_or(key, 0).ok());
        REQUIRE(config->object(key).status().ok() == config->object(key).object("d").status().ok());
        if (!config->get_int_lists_or(key, {}).ok()) {
          REQUIRE(contains(config->get_int_lists_or(key, {}).error().message, "[damaged]"));
        }
      }
    }
    CHECK(accepted > 0);
    CHECK(accepted < kJson);
  }
}
