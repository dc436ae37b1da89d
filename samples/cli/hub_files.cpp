#include "hub_files.h"

#include <algorithm>
#include <regex>

#include "suggestion.h"

namespace vkformer::cli {

namespace {

using Names = std::vector<std::string>;

bool at_top(const std::string& name) {
  return name.find('/') == std::string::npos;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What describes a model: small files at the top, and the modules of sentence-transformers.
bool is_description(const std::string& name) {
  static const std::regex kTop("[^/]*\\.(json|jinja|model|tiktoken)|(vocab|merges)[^/]*\\.txt");
  static const std::regex kModule("[0-9]+_[A-Za-z0-9]+/(config\\.json|model\\.safetensors)");
  return std::regex_match(name, kTop) || std::regex_match(name, kModule);
}

// The model's and its adapters' weights. Other safetensors files at the top often hold the same
// weights again, for other programs.
Names weight_files(const Names& files) {
  static const std::regex kModel("model(-[0-9]{5}-of-[0-9]{5})?\\.safetensors");
  static const std::regex kAdapter("adapter_model[^/]*\\.safetensors");
  Names models, adapters, others;
  for (const std::string& file : files) {
    if (!at_top(file) || !file.ends_with(".safetensors")) continue;
    Names& kind = std::regex_match(file, kModel)     ? models
                  : std::regex_match(file, kAdapter) ? adapters
                                                     : others;
    kind.push_back(file);
  }
  Names chosen = models.empty() && adapters.empty() ? others : models;
  chosen.insert(chosen.end(), adapters.begin(), adapters.end());
  return chosen;
}

// All parts of the GGUF file of which `first` is the first part, or the file alone.
Names gguf_parts(const Names& files, const std::string& first) {
  static const std::regex kFirst("(.*)-00001-of-([0-9]{5})\\.gguf");
  std::smatch name;
  if (!std::regex_match(first, name, kFirst)) return {first};
  Names parts;
  const std::string stem = std::string(name[1]) + "-",
                    end = "-of-" + std::string(name[2]) + ".gguf";
  for (const std::string& file : files) {
    if (file.starts_with(stem) && file.ends_with(end) &&
        file.size() == stem.size() + 5 + end.size()) {
      parts.push_back(file);
    }
  }
  return parts;
}

// Whole GGUF files and first parts.
Names gguf_models(const Names& files) {
  static const std::regex kLater(".*-[0-9]{5}-of-[0-9]{5}\\.gguf");
  Names found;
  for (const std::string& file : files) {
    if (!file.ends_with(".gguf")) continue;
    if (std::regex_match(file, kLater) && file.find("-00001-of-") == std::string::npos) continue;
    found.push_back(file);
  }
  return found;
}

std::string listed(const HubName& name, const Names& files) {
  constexpr size_t kMost = 12;
  std::string list;
  for (size_t i = 0; i < std::min(files.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + name.repository() + ":" + files[i];
  }
  if (files.size() > kMost) list += " and " + std::to_string(files.size() - kMost) + " more";
  return list;
}

Result<Names> one_file(const HubName& name, const Names& files) {
  static const std::regex kUsable(".*\\.(safetensors|gguf|json|jinja|model|tiktoken|txt)");
  if (!contains(files, name.file)) {
    const std::string nearest = nearest_name(name.file, files);
    return Error{
        ErrorCode::kNotFound,
        "[" + name.text() + "] The model " + name.repository() + " has no file " + name.file +
            (nearest.empty() ? "." : "; did you mean " + name.repository() + ":" + nearest + "?")};
  }
  if (!std::regex_match(name.file, kUsable)) {
    return Error{ErrorCode::kUnsupported, "[" + name.text() +
                                              "] vkformer reads no such file; it "
                                              "reads safetensors, GGUF, and the "
                                              "files of tokenizers and processors."};
  }
  return gguf_parts(files, name.file);
}

}  // namespace

Result<Names> choose_hub_files(const HubName& name, const Names& files) {
  if (!name.file.empty()) return one_file(name, files);
  Names chosen;
  for (const std::string& file : files) {
    if (is_description(file)) chosen.push_back(file);
  }
  const Names weights = weight_files(files);
  if (!weights.empty()) {
    chosen.insert(chosen.end(), weights.begin(), weights.end());
    return chosen;
  }
  const Names models = gguf_models(files);
  if (models.size() == 1) return gguf_parts(files, models.front());
  if (!models.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "[" + name.text() + "] has " + std::to_string(models.size()) +
                     " GGUF files; give one of them: " + listed(name, models) + "."};
  }
  std::string others;
  for (const std::string& file : files) {
    for (const char* ending : {".bin", ".pt", ".pth", ".h5", ".msgpack", ".onnx"}) {
      if (file.ends_with(ending) && others.size() < 200)
        others += (others.empty() ? "" : ", ") + file;
    }
  }
  return Error{ErrorCode::kUnsupported,
               "[" + name.text() +
                   "] has no weights that vkformer reads, which are *.safetensors "
                   "and *.gguf" +
                   (others.empty() ? "" : "; it has " + others) +
                   ". Look for a revision with safetensors (--revision refs/pr/1), or convert it "
                   "with transformers: save_pretrained(folder)."};
}

}  // namespace vkformer::cli
