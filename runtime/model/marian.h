// Marian (Junczys-Dowmunt et al., 2018) as Hugging Face's MarianMTModel saves it: a post-norm
// encoder-decoder with sinusoidal positions and, usually, one embedding for source, target and
// head.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_marian(const ModelFiles& files);

}  // namespace vkformer
