// T5 (Raffel et al., 2020) with its kin T5 v1.1, Flan-T5 and mT5: pre-norm stacks with RMS norms,
// without any bias and without a scale of the scores, and positions as a bias by distance that all
// layers of a stack share. A T5EncoderModel is the encoder alone.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_t5(const ModelFiles& files);
Result<std::unique_ptr<ModelFamily>> load_mt5(const ModelFiles& files);

}  // namespace vkformer
