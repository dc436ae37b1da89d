// What a MODEL argument that is no model directory was meant to be.
#pragma once

#include <string>

#include "vkformer/result.h"

namespace vkformer::cli {

// What the help of a MODEL argument says.
inline constexpr const char* kModelHelp =
    "model directory, GGUF or packed file, or OWNER/NAME that `vkformer pull` has downloaded";

// Whether `path` is a model: a folder with a config.json or a tokenizer.json, a GGUF file or
// a packed model. If it
// is none and has the form OWNER/NAME or OWNER/NAME:FILE, it becomes the path of that model in the
// hub's cache. Otherwise an error says what it is instead and what to do. It knows a model to
// download, another kind of file, a folder that holds models, and a typing error with the nearest
// model.
Status resolve_model_path(std::string& path);
// The same for a command that also takes the path of a tokenizer.json.
Status resolve_tokenizer_path(std::string& path);

}  // namespace vkformer::cli
