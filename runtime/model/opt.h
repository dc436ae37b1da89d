// OPT (Zhang et al., "OPT: Open Pre-trained Transformer Language Models", 2022): GPT-3's shape with
// ReLU, learned positions behind two unused rows, counted by the attention mask.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_opt(const ModelFiles& files);

}  // namespace vkformer
