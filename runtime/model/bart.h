// BART (Lewis et al., 2019), a post-norm encoder-decoder with learned positions and a norm after
// the embeddings, and mBART (Liu et al., 2020), which has its norms before the sublayers and one at
// the end of each stack.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_bart(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_mbart(const ModelFiles& files);

}  // namespace vkformer
