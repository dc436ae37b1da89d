// DeiT (Touvron et al., 2020): a ViT with a second token, trained on what a teacher says.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_deit(const ModelFiles& files);

}  // namespace vkformer
