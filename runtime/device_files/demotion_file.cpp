#include "device_files/demotion_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/message.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDemotionTitle = "vkformer demoted kernels 1 of 0.2.0";
constexpr uintmax_t kMostDemotionBytes = 65536;

Error unusable_demotions(const std::string& why) {
  return invalid_file(
      message({"[demotions] The file ", why,
               "; it is ignored. Make it anew with `vkformer conformance --demote`."}));
}

}  // namespace

std::string demotion_path(const std::string& directory, const PipelineCacheKey& key) {
  return fs::path(pipeline_cache_path(directory, key)).replace_extension("demoted").string();
}

Result<std::vector<KernelId>> read_demoted_kernels(const std::string& path,
                                                   const PipelineCacheKey& key) {
  std::vector<KernelId> kernels;
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return kernels;
  if (bytes > kMostDemotionBytes) return unusable_demotions("is too large");
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  const auto text = without_checksum(content.str());
  if (!file || !text) return unusable_demotions("is damaged or is none of vkformer's");
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != kDemotionTitle || !std::getline(lines, line) ||
      line != key_line(key)) {
    return unusable_demotions("was made for another device, driver or build of vkformer");
  }
  while (std::getline(lines, line)) {
    uint16_t id = 0;
    while (id < static_cast<uint16_t>(KernelId::kCount) &&
           kernel_info(static_cast<KernelId>(id)).name != line) {
      ++id;
    }
    if (id == static_cast<uint16_t>(KernelId::kCount))
      return unusable_demotions("names no kernel of ours");
    kernels.push_back(static_cast<KernelId>(id));
  }
  return kernels;
}

Status write_demoted_kernels(const std::string& path, const PipelineCacheKey& key,
                             std::span<const KernelId> kernels) {
  if (kernels.empty()) {
    std::error_code error;
    fs::remove(path, error);
    if (!error) return {};
    return not_found(
        message({"[demotions] The file ", path, " could not be removed; remove it by hand."}));
  }
  std::string text = std::string(kDemotionTitle) + "\n" + key_line(key) + "\n";
  for (const KernelId id : kernels) text += std::string(kernel_info(id).name) + "\n";
  text = with_checksum(text);
  if (replace_file(path, {std::as_bytes(std::span(text))})) return {};
  return not_found(message(
      {"[demotions] The file ", path, " could not be written; give a cache directory that can."}));
}

}  // namespace vkformer
