// BigBird (Zaheer et al., "Big Bird: Transformers for longer sequences", 2020): a BERT whose blocks
// of tokens see the first and the last block, their neighbours and a few random ones, in time
// linear in their number.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_big_bird(const ModelFiles& files);

}  // namespace vkformer
