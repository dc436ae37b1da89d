// Whisper (Radford et al., 2022): log-mel features through two convolutions into a pre-norm
// encoder, and a text decoder whose prompt names language and task.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_whisper(const ModelFiles& files);

}  // namespace vkformer
