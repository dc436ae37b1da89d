// LED, the Longformer encoder-decoder (Beltagy, Peters and Cohan, 2020): BART with a Longformer for
// an encoder and learned positions that begin at row 0.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_led(const ModelFiles& files);

}  // namespace vkformer
