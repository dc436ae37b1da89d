// Swin (Liu et al., 2021): attention inside windows that shift from block to block, and stages that
// halve the grid of tokens and double their width.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_swin(const ModelFiles& files);

}  // namespace vkformer
