// RoBERTa (Liu et al., 2019) and XLM-RoBERTa (Conneau et al., 2019): BERT whose positions begin
// behind the pad token's, with its own heads.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_roberta(const ModelFiles& files);

}  // namespace vkformer
