// The tuner's file: what it was made with, exactly, or no tuning at all.
#include "device_files/tuning_file.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace vkformer {
namespace {

namespace fs = std::filesystem;

const TuningKey kKey{{1, 2, 3, {4, 5}, 6}, Tier::kSubgroup};
const MatmulTuning kTuning{
    {{{1, MatmulStrategy::kStream}, {kAnyRows, MatmulStrategy::kWide, 16, 1}},
     {{8, MatmulStrategy::kRows, 0, 8, 1}}}};

// The same lines with a checksum that fits.
std::string resigned(std::string text, const std::string& from, const std::string& to) {
  text = text.substr(0, text.rfind("sum "));
  text.replace(text.find(from), from.size(), to);
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return text + "sum " + std::to_string(hash) + "\n";
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a tuning is read back as it was written") {
    const fs::path folder = fs::temp_directory_path() / "vkformer_tuning_file_test";
    fs::remove_all(folder);
    const std::string path = tuning_path(folder.string(), kKey);
    const auto absent = read_tuning(path, kKey);
    REQUIRE(absent.ok());
    CHECK(*absent == MatmulTuning{});
    REQUIRE(write_tuning(path, kKey, kTuning).ok());
    const auto back = read_tuning(path, kKey);
    REQUIRE_MESSAGE(back.ok(), back.error().message);
    CHECK(*back == kTuning);
    TuningKey other = kKey;
    other.tier = Tier::kBaseline;
    CHECK(tuning_path(folder.string(), other) != path);
    std::ofstream(path, std::ios::binary) << std::string(20000, 'x');
    CHECK_FALSE(read_tuning(path, kKey).ok());
    fs::remove_all(folder);
    std::ofstream(folder, std::ios::binary) << "in the way";
    CHECK_FALSE(write_tuning(path, kKey, kTuning).ok());
    fs::remove(folder);
  }

  TEST_CASE("a tuning made with something else, or damaged, is refused") {
    const std::string text = tuning_text(kKey, kTuning);
    for (auto change :
         {+[](TuningKey& k) { ++k.device.vendor; },
          +[](TuningKey& k) { ++k.device.driver_version; },
          +[](TuningKey& k) { ++k.device.uuid[15]; }, +[](TuningKey& k) { ++k.device.kernels; },
          +[](TuningKey& k) { k.tier = Tier::kFp16; }}) {
      TuningKey key = kKey;
      change(key);
      CHECK_FALSE(parse_tuning(text, key).ok());
    }
    for (size_t i = 0; i < text.size(); ++i) {
      std::string bad = text;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      CHECK_FALSE(parse_tuning(bad, kKey).ok());
      CHECK_FALSE(parse_tuning(text.substr(0, i), kKey).ok());
    }
    CHECK_FALSE(parse_tuning(text + "x", kKey).ok());
  }

  TEST_CASE("hostile choices under a good checksum are refused") {
    const std::string text = tuning_text(kKey, kTuning);
    REQUIRE(parse_tuning(resigned(text, "f16 8", "f16 9"), kKey).ok());
    const std::pair<const char*, const char*> changes[] = {
        {"f32 1 stream 0 0 0", "f32 0 stream 0 0 0"},
        {"f32 1 stream 0 0 0", "f32 4294967296 stream 0 0 0"},
        {"f32 1 stream 0 0 0", "f32 -1 stream 0 0 0"},
        {"f32 1 stream 0 0 0", "f32 1 river 0 0 0"},
        {"f32 1 stream 0 0 0", "f64 1 stream 0 0 0"},
        {"f32 1 stream 0 0 0", "f32 1 stream 0 0"},
        {"f32 1 stream 0 0 0", "f32 1 stream 0 0 0 0"},
        {"f32 1 stream 0 0 0", ""},
        {"f32 1 stream 0 0 0", "f32 4294967295 stream 0 0 0"},
        {"wide 16 1 0", "wide 300 1 0"},
        {"wide 16 1 0", "wide 16 1x 0"},
        {"vkformer tuning 1", "vkformer tuning 2"},
    };
    for (const auto& [from, bound_to] : changes) {
      const auto& to = bound_to;
      CAPTURE(to);
      const auto parsed = parse_tuning(resigned(text, from, to), kKey);
      REQUIRE_FALSE(parsed.ok());
      CHECK(parsed.error().message.find("[tuning]") == 0);
    }
    std::string many;
    for (int i = 1; i <= 65; ++i) many += "f32 " + std::to_string(i) + " stream 0 0 0\n";
    CHECK_FALSE(parse_tuning(resigned(text, "f32 1 stream 0 0 0\n", many), kKey).ok());
  }
}

}  // namespace vkformer
