// The Transformer of "Attention is all you need" (Vaswani et al., 2017) as PyTorch's nn.Transformer
// lays it out: post- or pre-norm, ReLU or GELU, embeddings separate or shared.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_transformer(const ModelFiles& files);

}  // namespace vkformer
