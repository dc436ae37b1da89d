// wav2vec 2.0 with Conformer layers (Baevski et al., 2020, "wav2vec 2.0"; Gulati et al., 2020,
// "Conformer"): frames of sound by convolutions, then layers of attention and convolution, and a
// character for each frame (Graves et al., 2006) where it has such a head.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_wav2vec2_conformer(const ModelFiles& files);

}  // namespace vkformer
