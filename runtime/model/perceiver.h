// Perceiver IO (Jaegle et al., "Perceiver IO: A General Architecture for Structured Inputs &
// Outputs", 2021): a few latents read the input by cross-attention, attend to each other, and are
// read by the queries of a decoder.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_perceiver(const ModelFiles& files);

}  // namespace vkformer
