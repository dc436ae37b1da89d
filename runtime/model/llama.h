// LLaMA (Touvron et al., 2023), Mistral (Jiang et al., 2023), Qwen2 (Yang et al., 2024), Gemma and
// Gemma 2 (Gemma Team, 2024): rotary positions, RMSNorm, grouped keys and values, a gated
// feed-forward layer.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_llama(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_mistral(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_qwen2(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_gemma(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_gemma2(const ModelFiles& files);

}  // namespace vkformer
