// Language models that read pictures. They have a tower of pictures, a projection, and a decoder
// with LLaMA's layers (llava.cpp, paligemma.cpp, gemma3.cpp, idefics3.cpp, qwen_vl.cpp).
#pragma once

#include "model/blocks/picture_prompt.h"
#include "model/llama.h"

namespace vkformer {

// text_config, or the configuration itself where older files have the text's keys in it.
JsonConfig text_config_of(const JsonConfig& config);
// text_config or vision_config, which must be there.
Result<JsonConfig> nested_config(const JsonConfig& config, const std::string& key);

// The id of image tokens, by either name of the key; it must be one of the vocabulary.
Result<int64_t> read_image_token(const JsonConfig& config, const std::string& key,
                                 const std::string& other, int64_t fallback);

// What is beside the decoder. `kind` is the decoder's, with the family and its class.
struct PictureLanguage {
  LlamaKind kind;
  std::shared_ptr<PicturePrompt> pictures;
  // Prefixes of the decoder's tensors, the most common first.
  std::vector<std::string> prefixes = {"language_model.model.", "model.language_model.",
                                       "language_model.", "model.language_model.model."};
};
Result<std::unique_ptr<ModelFamily>> load_picture_language(const ModelFiles& files,
                                                           PictureLanguage parts);

// The first of the prefixes with which the file has that tensor; the last one if none has.
std::string present_prefix(const Checkpoint& checkpoint, const std::vector<std::string>& prefixes,
                           const std::string& tensor);

// x (N, T, D) as rows (N T, D).
TensorId as_rows(Graph& graph, TensorId x);

}  // namespace vkformer
