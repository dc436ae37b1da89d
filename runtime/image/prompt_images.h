// What one picture in a prompt becomes: one image, or several, as a decoder that reads images takes
// them.
#pragma once

#include "vkformer/tensor.h"

namespace vkformer {

struct PromptImages {
  // pixel_values and what goes with them, as the model's inputs.
  TensorMap tensors;
  // Pixels of each image.
  int64_t height = 0;
  int64_t width = 0;
  // Tiles that the picture was cut into, before one more image of the whole; 0: it is one image.
  int64_t rows = 0;
  int64_t columns = 0;
};

}  // namespace vkformer
