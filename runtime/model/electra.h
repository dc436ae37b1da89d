// ELECTRA (Clark et al., 2020): BERT with an embedding narrower than its layers, a discriminator
// of replaced tokens, and no pooler.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_electra(const ModelFiles& files);

}  // namespace vkformer
