// DistilBERT (Sanh et al., 2019): BERT without token types and pooler, with its own heads.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_distilbert(const ModelFiles& files);

}  // namespace vkformer
