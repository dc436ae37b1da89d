// Resampling of 8-bit pictures with Pillow's filters and rounding: equal bytes for equal input.
// Needs: RgbPicture, vkformer/picture.h for the filters' names.
#pragma once

#include <cstdint>
#include <vector>

#include "image/picture.h"
#include "vkformer/picture.h"
#include "vkformer/result.h"

namespace vkformer {

// The source pixels of one target pixel: weights[first_weight ...] belong to source `first` on.
struct ResampleTaps {
  int first = 0;
  int count = 0;
  size_t first_weight = 0;
};

struct ResampleTable {
  std::vector<ResampleTaps> taps;  // one for each target pixel
  std::vector<int32_t> weights;    // in units of 2^-22
};

// How a line of `from` pixels becomes one of `to`. Sums of weighted bytes stay inside 32 bits.
ResampleTable make_resample_table(int from, int to, Resampling resampling);

// The picture at another size. Columns first, then rows, each rounded to bytes; a direction that
// keeps its size is left alone. Fails where the new size is not one that a picture may have.
Result<RgbPicture> resize_picture(const RgbPicture& picture, int width, int height,
                                  Resampling resampling);

}  // namespace vkformer
