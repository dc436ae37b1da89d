// M2M-100 (Fan et al., 2020) and NLLB: a pre-norm encoder-decoder with sinusoidal positions that
// are counted from the ids, past the padding. The target's language is forced as the first token.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_m2m_100(const ModelFiles& files);

}  // namespace vkformer
