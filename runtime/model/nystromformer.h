// Nystroemformer (Xiong et al. 2021): BERT with attention through landmarks and a depthwise
// convolution of the values.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_nystromformer(const ModelFiles& files);

}  // namespace vkformer
