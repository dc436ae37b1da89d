// GPT-2 (Radford et al., 2019): learned positions, norms before each sublayer, tied head.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_gpt2(const ModelFiles& files);

}  // namespace vkformer
