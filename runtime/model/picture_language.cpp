#include "model/picture_language.h"

#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"

namespace vkformer {

JsonConfig text_config_of(const JsonConfig& config) {
  return config.has("text_config") ? config.object("text_config") : config;
}

Result<JsonConfig> nested_config(const JsonConfig& config, const std::string& key) {
  const JsonConfig nested = config.object(key);
  VKF_CHECK(nested.status());
  if (nested.keys().empty()) {
    return invalid_file(message(
        {"[", key, "] is missing in ", config.where(), "; a model that reads images needs one."}));
  }
  return nested;
}

Result<int64_t> read_image_token(const JsonConfig& config, const std::string& key,
                                 const std::string& other, int64_t fallback) {
  return config.get_int_or(config.has(key) ? key : other, fallback);
}

Result<std::unique_ptr<ModelFamily>> load_picture_language(const ModelFiles& files,
                                                           PictureLanguage parts) {
  const JsonConfig& config = files.config;
  const JsonConfig text = text_config_of(config);
  VKF_CHECK(text.status());
  const PicturePrompt::Settings settings = parts.pictures->settings();
  VKF_ASSIGN(LlamaParts llama,
             read_llama_kind(config, text, parts.kind, std::move(parts.pictures)));
  // The library caps the logits of text models alone.
  llama.block.logit_cap = 0.0f;
  const int64_t image = settings.image_token;
  if (image < 0 || image >= llama.facts.target_vocab) {
    return unsupported(message({"[image_token_id] in ", config.where(), " is ", image,
                                ", but must be a token of the text model, 0 to ",
                                llama.facts.target_vocab - 1, "."}));
  }
  llama.facts.images = settings.prompts;
  llama.facts.images.token = image;
  if (settings.types == "token_type_ids") llama.facts.source_tokens.types = 2;
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings",
                                                 llama.names.tied == DecoderNames::Tied::kYes));
  if (tied) llama.names.tied = DecoderNames::Tied::kYes;
  llama.names.prefix = parts.prefixes.front();
  llama.names.prefixes.assign(parts.prefixes.begin() + 1, parts.prefixes.end());
  llama.names.head_prefixes = {"language_model."};
  // What the library takes from the text's configuration where the model's own has none.
  const bool own = config.has("eos_token_id");
  VKF_ASSIGN(GenerationFacts tokens, read_generation(own ? config : text, files.generation));
  return make_llama(std::move(llama), std::move(tokens));
}

std::string present_prefix(const Checkpoint& checkpoint, const std::vector<std::string>& prefixes,
                           const std::string& tensor) {
  for (const std::string& prefix : prefixes) {
    if (checkpoint.find(prefix + tensor) != nullptr) return prefix;
  }
  return prefixes.back();
}

TensorId as_rows(Graph& graph, TensorId x) {
  Shape& shape = graph.tensor(x).shape;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  shape = {rows, shape.back()};
  return x;
}

}  // namespace vkformer
