// picture_values: a picture of bytes resampled in fixed point and looked up, from its formula.
#pragma once

#include "reference/array.h"

namespace vkformer::reference {

// What a picture goes through; weights are whole numbers, in units of 2^-22.
struct PictureValuesInputs {
  Array bytes;    // (H, W, 3)
  Array columns;  // weights (width, W)
  Array rows;     // weights (height, H)
  Array values;   // of every byte (3, 256)
};

// byte = clamp(floor((2^21 + sum weight * byte) / 2^22), 0, 255) along columns, then rows, and its
// value. -> (3, height, width)
Result<Array> picture_values(const PictureValuesInputs& inputs);

}  // namespace vkformer::reference
