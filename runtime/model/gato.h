// Gato (Reed et al., "A Generalist Agent", 2022): one causal stack over text, image patches,
// continuous and discrete observations and actions, all in one sequence, that chooses actions.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_gato(const ModelFiles& files);

}  // namespace vkformer
