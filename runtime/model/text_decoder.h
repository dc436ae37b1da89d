// Decoders with LLaMA's layers, read without making a family of them: what their layers compute,
// for writers of other formats.
#pragma once

#include "model/llama.h"

namespace vkformer {

// A build without one of these families has in its place what says so (cmake/families.cmake).
Result<LlamaKind> qwen3_kind(const JsonConfig& config);
Result<LlamaKind> phi3_kind(const JsonConfig& config);

// A configuration of the type llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text or phi3.
// Another type is kUnsupported.
Result<LlamaParts> read_text_decoder(const ModelFiles& files);

}  // namespace vkformer
