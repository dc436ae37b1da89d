// BLOOM (Le Scao et al., 2022): slopes for positions (ALiBi), a norm after the embedding.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_bloom(const ModelFiles& files);

}  // namespace vkformer
