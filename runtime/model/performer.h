// Performer (Choromanski et al., "Rethinking Attention with Performers", 2021): softmax attention
// estimated by positive random features.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_performer(const ModelFiles& files);

}  // namespace vkformer
