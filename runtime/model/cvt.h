// CvT (Wu et al., 2021): stages of tokens that convolutions make, with queries, keys and values
// from depthwise convolutions over the grid.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_cvt(const ModelFiles& files);

}  // namespace vkformer
