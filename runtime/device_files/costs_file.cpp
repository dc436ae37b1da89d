#include "device_files/costs_file.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fnv.h"
#include "base/real_text.h"

namespace vkformer {
namespace {

constexpr const char* kCostsTitle = "vkformer costs 1 of 0.2.0";
constexpr uintmax_t kMostCostsBytes = uintmax_t{1} << 21;
constexpr double kMostMicroseconds = 1e9;
constexpr double kMostWork = 1e18;  // operations

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Above 0 and at most `most`.
std::optional<double> amount(const std::string& word, double most) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto parsed = read_real(word.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value > 0 && value <= most ? std::optional<double>(value) : std::nullopt;
}

std::optional<uint64_t> hash_of(const std::string& word) {
  uint64_t value = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value, 16);
  if (word.size() != 16 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

bool add_line(const std::string& line, KernelCosts::Table& table) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  if (words.size() < 2) return false;
  const auto time = amount(words.back(), kMostMicroseconds);
  if (!time) return false;
  if (words[0] == "fixed" && words.size() == 2) {
    table.fixed_microseconds = *time;
    return true;
  }
  if (words[0] == "kernel" && words.size() == 4) {
    const auto work = amount(words[2], kMostWork);
    if (!work) return false;
    table.kernels[words[1]] = {*work, *time};
    return true;
  }
  const auto key = words[0] == "dispatch" && words.size() == 3 ? hash_of(words[1]) : std::nullopt;
  if (!key || table.dispatches.size() >= KernelCosts::kMostDispatches) return false;
  table.dispatches[*key] = *time;
  return true;
}

}  // namespace

std::string costs_path(const std::string& directory, const PipelineCacheKey& key) {
  const std::filesystem::path cache = pipeline_cache_path(directory, key);
  return std::filesystem::path(cache).replace_extension("costs").string();
}

std::string costs_text(const PipelineCacheKey& key, const KernelCosts::Table& table) {
  std::string text = std::string(kCostsTitle) + "\n" + key_line(key) + "\n";
  if (table.fixed_microseconds > 0) text += "fixed " + digits(table.fixed_microseconds) + "\n";
  for (const auto& [name, rate] : table.kernels) {
    text += "kernel " + name + " " + digits(rate.work) + " " + digits(rate.microseconds) + "\n";
  }
  for (const auto& [hash, time] : table.dispatches) {
    text += "dispatch " + hex_text(hash) + " " + digits(time) + "\n";
  }
  return with_checksum(text);
}

std::optional<KernelCosts::Table> parse_costs(const std::string& text,
                                              const PipelineCacheKey& key) {
  const auto whole = without_checksum(text);
  if (!whole) return std::nullopt;
  std::istringstream lines(*whole);
  std::string line;
  if (!std::getline(lines, line) || line != kCostsTitle) return std::nullopt;
  if (!std::getline(lines, line) || line != key_line(key)) return std::nullopt;
  KernelCosts::Table table;
  while (std::getline(lines, line)) {
    if (!add_line(line, table)) return std::nullopt;
  }
  return table;
}

std::optional<KernelCosts::Table> read_costs(const std::string& path, const PipelineCacheKey& key) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || bytes > kMostCostsBytes) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return file ? parse_costs(text.str(), key) : std::nullopt;
}

bool write_costs(const std::string& path, const PipelineCacheKey& key,
                 const KernelCosts::Table& table) {
  const std::string text = costs_text(key, table);
  return replace_file(path, {std::as_bytes(std::span(text))});
}

}  // namespace vkformer
