#include "model/text_decoder.h"

namespace vkformer {
namespace {

Result<LlamaKind> text_decoder_kind(const JsonConfig& config) {
  VKF_ASSIGN(const std::string type, config.get_string("model_type"));
  if (type == "qwen3") return qwen3_kind(config);
  if (type == "phi3") return phi3_kind(config);
  return llama_kind_of(config, type);
}

}  // namespace

Result<LlamaParts> read_text_decoder(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, text_decoder_kind(files.config));
  return read_llama_kind(files.config, files.config, kind, nullptr, files.sentence);
}

}  // namespace vkformer
