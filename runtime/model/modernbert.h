// ModernBERT (Warner et al., 2024): a pre-norm encoder with rotary positions, gated feed-forward
// layers, and layers that see the whole text or a window around each token.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_modernbert(const ModelFiles& files);

}  // namespace vkformer
