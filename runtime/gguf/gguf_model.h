// What the metadata of a GGUF file says of a model, as the configuration that its family reads in
// config.json. The names of its tensors, too.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "checkpoint/json_config.h"
#include "gguf/gguf_tensors.h"

namespace vkformer {

struct GgufModel {
  nlohmann::json config;      // config.json
  nlohmann::json generation;  // generation_config.json
  // modules.json and the pooling's config.json, of a model that embeds texts; or null.
  nlohmann::json modules;
  nlohmann::json pooling;
  std::map<std::string, nlohmann::json> dense;  // of layers after it, by name of their config.json
  GgufNaming naming;
};

// `files`: the parts of one model, whose first has the metadata. An error names the key and its
// value; an architecture that vkformer has no family for is kUnsupported.
Result<GgufModel> read_gguf_model(const std::vector<const GgufFile*>& files);

// The names that the tensors of a model with this config.json have in files of the architecture. An
// error says which one the model is of.
Result<GgufNaming> gguf_naming(const std::string& architecture, const JsonConfig& config);

// The architectures that vkformer reads: "llama, ...".
std::string gguf_architectures();

}  // namespace vkformer
