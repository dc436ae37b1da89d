#include "model_path.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "hub_cache.h"
#include "pack_text.h"
#include "suggestion.h"

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWhatAModelIs =
    "a model is a folder with config.json, *.safetensors and tokenizer.json, as on the Hugging "
    "Face hub, a GGUF file, or a file of `vkformer pack`";
// Folders that are looked at in one place; more are not there by hand.
constexpr size_t kMostFolders = 4096;

Error no_model(const std::string& path, const std::string& text) {
  return {ErrorCode::kNotFound, "[" + path + "] " + text};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_model(const fs::path& folder) {
  for (const char* name :
       {"config.json", "gliner_config.json", "tokenizer.json", "model.gguf", "tokenizer.model",
        "spiece.model", "tekken.json", "vocab.json", "vocab.txt"}) {
    if (is_there(folder / name)) return true;
  }
  return false;
}

// Names of the folders in a folder, sorted; none where it cannot be read.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator items(folder.empty() ? "." : folder, code);
  for (; !code && items != fs::directory_iterator(); items.increment(code)) {
    if (names.size() == kMostFolders) break;
    if (is_folder(items->path())) names.push_back(items->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The path with the names that do not exist replaced by the nearest that do; empty: none is near,
// or the result is no model.
std::string nearest_model(const fs::path& path) {
  fs::path found;
  for (const fs::path& part : path) {
    if (part.empty()) continue;  // after a last slash
    if (is_there(found / part)) {
      found /= part;
      continue;
    }
    const std::string nearest = nearest_name(part.string(), folders_in(found));
    if (nearest.empty()) return "";
    found /= nearest;
  }
  return is_model(found) ? found.string() : "";
}

// Whether a file begins with "GGUF".
bool is_gguf(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  char magic[4] = {};
  return stream.read(magic, sizeof magic) && std::string(magic, sizeof magic) == "GGUF";
}

Error other_file(const std::string& path) {
  const fs::path file(path);
  const std::string kind = file.extension().string();
  if (kind == ".gguf") {
    return no_model(path,
                    "has the name of a GGUF file, but does not begin with 'GGUF'; download it "
                    "anew.");
  }
  fs::path folder = file.parent_path();
  if (folder.empty()) folder = ".";
  if (is_model(folder)) {
    return no_model(path, "is a file of a model; give its folder: " + folder.string());
  }
  return no_model(path, std::string("is a file, but ") + kWhatAModelIs + ".");
}

Error other_folder(const std::string& path) {
  const fs::path folder(path);
  // The hub's cache has models two levels down.
  std::vector<fs::path> places = {folder};
  if (is_folder(folder / "snapshots")) places = {folder / "snapshots"};
  std::string models;
  for (const std::string& name : folders_in(places.front())) {
    const fs::path model = places.front() / name;
    if (is_model(model)) models += (models.empty() ? "" : ", ") + model.string();
  }
  if (!models.empty()) {
    return no_model(path,
                    "is a folder without config.json, but it holds models; give one of "
                    "them: " +
                        models);
  }
  std::error_code ignored;
  for (fs::directory_iterator items(folder, ignored), end; !ignored && items != end;
       items.increment(ignored)) {
    if (!is_gguf(items->path())) continue;
    return no_model(
        path, "has no config.json, but it holds a GGUF file; give that: " + items->path().string());
  }
  return no_model(path, std::string("has no config.json, but ") + kWhatAModelIs + ".");
}

}  // namespace

Status resolve_model_path(std::string& path) {
  if (is_model(path) || is_gguf(path) || is_pack(path)) return {};
  if (is_folder(path)) return other_folder(path);
  if (is_there(path)) return other_file(path);
  const std::optional<HubName> name = parse_hub_name(path);
  Result<std::string> cached = Error{ErrorCode::kNotFound, ""};
  if (name) cached = cached_model(*name);
  if (cached) {
    path = *cached;
    return {};
  }
  const std::string nearest = nearest_model(path);
  if (!nearest.empty()) {
    return no_model(path, "does not exist; did you mean " + nearest + "?");
  }
  // A path whose first folder is there was not meant as a name.
  if (name && !is_folder(name->owner)) return cached.error();
  return no_model(path, std::string("does not exist; ") + kWhatAModelIs + ".");
}

Status resolve_tokenizer_path(std::string& path) {
  if (is_there(path) && !is_folder(path)) return {};
  return resolve_model_path(path);
}

}  // namespace vkformer::cli
