// Linformer (Wang et al., "Linformer: Self-Attention with Linear Complexity", 2020): keys and
// values projected to a fixed number along the sequence, then softmax attention.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_linformer(const ModelFiles& files);

}  // namespace vkformer
