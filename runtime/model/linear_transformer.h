// The linear Transformer (Katharopoulos et al., "Transformers are RNNs", 2020): attention by the
// features elu(x) + 1.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_linear_transformer(const ModelFiles& files);

}  // namespace vkformer
