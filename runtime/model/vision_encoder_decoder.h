// A ViT or DeiT that a GPT-2 with cross-attention describes in words (Hugging Face's
// VisionEncoderDecoderModel), with a projection between them where their widths differ.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_vision_encoder_decoder(const ModelFiles& files);

}  // namespace vkformer
