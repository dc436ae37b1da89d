// What Granite's families share: multipliers of embeddings, scores, branches and logits.
#pragma once

#include "model/llama.h"

namespace vkformer {

Status read_granite_multipliers(const JsonConfig& config, DecoderConfig& block);

}  // namespace vkformer
