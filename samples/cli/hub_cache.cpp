#include "hub_cache.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <vector>

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

// More snapshots and files are not there by hand.
constexpr size_t kMostEntries = 4096;
constexpr size_t kMostNameBytes = 1024;

std::string hub_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator items(folder, code);
  for (; !code && items != fs::directory_iterator(); items.increment(code)) {
    if (names.size() == kMostEntries) break;
    names.push_back(items->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_cached_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The GGUF files of a snapshot that stand for a model: whole ones and first parts.
std::vector<std::string> gguf_files(const fs::path& snapshot) {
  static const std::regex kLaterPart(".*-[0-9]{5}-of-[0-9]{5}\\.gguf");
  std::vector<std::string> found;
  for (const std::string& name : names_in(snapshot)) {
    if (!name.ends_with(".gguf")) continue;
    if (std::regex_match(name, kLaterPart) && name.find("-00001-of-") == std::string::npos)
      continue;
    found.push_back(name);
  }
  return found;
}

}  // namespace

std::optional<HubName> parse_hub_name(const std::string& text) {
  static const std::regex kForm(
      "([A-Za-z0-9][A-Za-z0-9_.-]{0,95})/([A-Za-z0-9][A-Za-z0-9_.-]{0,95})(:(.+))?");
  std::smatch parts;
  if (text.size() > kMostNameBytes || !std::regex_match(text, parts, kForm)) return std::nullopt;
  HubName name{parts[1], parts[2], parts[4]};
  for (const std::string& word : {name.owner, name.name}) {
    // The hub allows neither; "--" would also make two names the same folder.
    if (word.find("..") != std::string::npos || word.find("--") != std::string::npos) {
      return std::nullopt;
    }
  }
  if (!name.file.empty() && !is_inner_file_name(name.file)) return std::nullopt;
  return name;
}

bool is_inner_file_name(const std::string& name) {
  if (name.empty() || name.size() > kMostNameBytes) return false;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x20 || byte == 0x7f || letter == '\\' || letter == ':') return false;
  }
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool is_plain_name(const std::string& name) {
  static const std::regex kForm("[A-Za-z0-9][A-Za-z0-9_.-]{0,127}");
  return std::regex_match(name, kForm);
}

fs::path hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string cache = hub_variable(name); !cache.empty()) return cache;
  }
  if (const std::string home = hub_variable("HF_HOME"); !home.empty()) {
    return fs::path(home) / "hub";
  }
  const std::string caches = hub_variable("XDG_CACHE_HOME");
  const fs::path base =
      caches.empty() ? fs::path(hub_variable("HOME")) / ".cache" : fs::path(caches);
  return base / "huggingface" / "hub";
}

fs::path hub_model_folder(const HubName& name) {
  return hub_cache_folder() / ("models--" + name.owner + "--" + name.name);
}

bool hub_is_offline() {
  std::string value = hub_variable("HF_HUB_OFFLINE");
  if (value.empty()) value = hub_variable("TRANSFORMERS_OFFLINE");
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string cached_commit(const HubName& name, const std::string& revision) {
  const fs::path folder = hub_model_folder(name);
  std::error_code ignored;
  if (is_plain_name(revision) && fs::is_directory(folder / "snapshots" / revision, ignored)) {
    return revision;
  }
  if (!is_inner_file_name(revision)) return "";
  std::ifstream file(folder / "refs" / revision);
  std::string commit;
  std::getline(file, commit);
  return is_plain_name(commit) ? commit : "";
}

std::optional<std::string> model_in_snapshot(const HubName& name, const std::string& commit) {
  const fs::path snapshot = hub_model_folder(name) / "snapshots" / commit;
  if (!name.file.empty()) {
    if (!is_cached_file(snapshot / name.file)) return std::nullopt;
    return (snapshot / name.file).string();
  }
  for (const char* file :
       {"config.json", "gliner_config.json", "adapter_config.json", "tokenizer.json"}) {
    if (is_cached_file(snapshot / file)) return snapshot.string();
  }
  const std::vector<std::string> files = gguf_files(snapshot);
  if (files.size() == 1) return (snapshot / files.front()).string();
  return std::nullopt;
}

Result<std::string> cached_model(const HubName& name) {
  std::vector<std::string> commits = names_in(hub_model_folder(name) / "snapshots");
  if (const std::string main = cached_commit(name, "main"); !main.empty()) commits = {main};
  std::vector<std::string> found;
  for (const std::string& commit : commits) {
    if (const auto model = model_in_snapshot(name, commit)) found.push_back(*model);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    const std::string file = name.file.empty() ? "" : " with the file " + name.file;
    return Error{ErrorCode::kNotFound,
                 "[" + name.text() + "] is not in the hub's cache " + hub_cache_folder().string() +
                     file + "; download it with `vkformer pull " + name.text() + "`."};
  }
  std::string list;
  for (const std::string& folder : found) list += (list.empty() ? "" : ", ") + folder;
  return Error{ErrorCode::kNotFound,
               "[" + name.text() +
                   "] has several snapshots in the cache and none of the branch "
                   "main; give one of them: " +
                   list + "."};
}

}  // namespace vkformer::cli
