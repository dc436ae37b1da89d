// GPT-NeoX (Black et al., 2022): partly rotary heads, attention and feed-forward side by side.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_gpt_neox(const ModelFiles& files);

}  // namespace vkformer
