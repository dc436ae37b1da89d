// The architectures of GGUF files that vkformer has families for.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "gguf/gguf_metadata.h"
#include "gguf/gguf_tensors.h"

namespace vkformer {

struct GgufArchitecture {
  const char* name;
  const char* family;   // model_type
  const char* further;  // model types whose tensors have the same names, or ""
  const char* of;       // the class
  Result<nlohmann::json> (*config)(const GgufMetadata& m);
  std::vector<GgufName> (*names)();
};

std::span<const GgufArchitecture> gguf_architecture_list();
// Null: none has that name.
const GgufArchitecture* find_gguf_architecture(const std::string& name);

}  // namespace vkformer
