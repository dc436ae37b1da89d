// GPT-Neo (Black et al., 2021), the open form of GPT-3 (Brown et al., 2020): layers that see
// everything alternate with locally banded ones.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_gpt_neo(const ModelFiles& files);

}  // namespace vkformer
