#include "device_files/tuning_file.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/message.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTuningTitle = "vkformer tuning 1 of 0.2.0";
constexpr uintmax_t kMostTuningBytes = 16384;
constexpr size_t kMostChoices = 64;

std::string key_line(const TuningKey& key) {
  return key_line(key.device) + " " + choice_name(key.tier);
}

Error unusable_tuning(const std::string& why) {
  return invalid_file(
      message({"[tuning] The file ", why, "; it is ignored. Make it anew with `vkformer tune`."}));
}

std::optional<uint32_t> number(const std::string& word, uint32_t most) {
  uint32_t value = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value > most) return std::nullopt;
  return value;
}

// "f16 8 stream 0 0 0"
Status add_choice(const std::string& line, MatmulTuning& tuning) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const bool half = !words.empty() && words[0] == "f16";
  if (words.size() != 6 || (!half && words[0] != "f32")) {
    return unusable_tuning("has a line \"" + line.substr(0, 60) + "\" that is no choice");
  }
  const auto strategy = strategy_from_name(words[2]);
  const auto most = number(words[1], kAnyRows);
  const auto rows = number(words[3], 64), lanes = number(words[4], 64),
             slices = number(words[5], 64);
  std::vector<MatmulChoice>& list = tuning[half ? 1 : 0];
  const uint32_t least = list.empty() ? 1 : list.back().max_rows;
  if (!strategy || !most || !rows || !lanes || !slices || *most < least ||
      list.size() >= kMostChoices || (!list.empty() && *most == least)) {
    return unusable_tuning("has a choice \"" + line.substr(0, 60) + "\" that no tuner writes");
  }
  list.push_back({*most, *strategy, static_cast<uint8_t>(*rows), static_cast<uint8_t>(*lanes),
                  static_cast<uint8_t>(*slices)});
  return {};
}

}  // namespace

std::string tuning_path(const std::string& directory, const TuningKey& key) {
  const fs::path cache = pipeline_cache_path(directory, key.device);
  return fs::path(cache).replace_extension(std::string(choice_name(key.tier)) + ".tuning").string();
}

std::string tuning_text(const TuningKey& key, const MatmulTuning& tuning) {
  std::string text = std::string(kTuningTitle) + "\n" + key_line(key) + "\n";
  for (size_t half = 0; half < tuning.size(); ++half) {
    for (const MatmulChoice& c : tuning[half]) {
      text += std::string(half != 0 ? "f16 " : "f32 ") + std::to_string(c.max_rows) + " " +
              strategy_name(c.strategy) + " " + std::to_string(c.rows) + " " +
              std::to_string(c.lanes) + " " + std::to_string(c.slices) + "\n";
    }
  }
  return with_checksum(text);
}

Result<MatmulTuning> parse_tuning(const std::string& text, const TuningKey& key) {
  const auto whole = without_checksum(text);
  if (!whole) return unusable_tuning("is damaged or is none of vkformer's");
  std::istringstream lines(*whole);
  std::string line;
  if (!std::getline(lines, line) || line != kTuningTitle) {
    return unusable_tuning("was made by another version of vkformer");
  }
  if (!std::getline(lines, line) || line != key_line(key)) {
    return unusable_tuning("was made for another device, driver, tier or build of vkformer");
  }
  MatmulTuning tuning;
  while (std::getline(lines, line)) VKF_CHECK(add_choice(line, tuning));
  return tuning;
}

Result<MatmulTuning> read_tuning(const std::string& path, const TuningKey& key) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return MatmulTuning{};
  if (bytes > kMostTuningBytes) {
    return unusable_tuning("has " + std::to_string(bytes) + " bytes, more than the " +
                           std::to_string(kMostTuningBytes) + " that a tuning can have");
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return unusable_tuning("cannot be read");
  return parse_tuning(text.str(), key);
}

Status write_tuning(const std::string& path, const TuningKey& key, const MatmulTuning& tuning) {
  const std::string text = tuning_text(key, tuning);
  if (replace_file(path, {std::as_bytes(std::span(text))})) return {};
  return not_found(message(
      {"[tuning] The file ", path, " could not be written; give a cache directory that can."}));
}

}  // namespace vkformer
