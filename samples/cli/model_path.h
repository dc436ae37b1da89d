// What a MODEL argument that is no model directory was meant to be.
#pragma once

#include <string>

#include "vkformer/result.h"

namespace vkformer::cli {

// Whether `path` is a model folder: one with a config.json or a tokenizer.json. Otherwise an error
// says what it is instead and what to do: the name of a model of the Hugging Face hub, a GGUF file
// or another kind of file, a folder that holds models, or a typing error with the nearest model.
Status check_model_path(const std::string& path);
// The same for a command that also takes the path of a tokenizer.json.
Status check_tokenizer_path(const std::string& path);

}  // namespace vkformer::cli
