// ALBERT (Lan et al., 2019): BERT with an embedding narrower than its layers, and layers that share
// their weights by groups.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_albert(const ModelFiles& files);

}  // namespace vkformer
