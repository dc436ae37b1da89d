// A picture processor's settings as tables of words, for the kernel that makes pixel values of
// images that lie on the GPU. Needs: make_resample_table, make_values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image/picture_processor.h"

namespace vkformer {

// Where a picture's entries begin in the words, and whether its columns stay as they are.
struct PictureTapPlace {
  uint32_t columns = 0;
  uint32_t rows = 0;
  bool same_columns = false;
};

struct PictureTables {
  PictureSize size;  // of every result
  // The bits of 3 x 256 values by byte come first. Every target column and row of each picture
  // follows, with its first source, the count of weights and the word of the first. The weights
  // come last.
  std::vector<uint32_t> words;
  std::vector<PictureTapPlace> places;  // one for each picture
};

// An error if a picture cannot be processed, or one comes to another size than the first. The
// settings are checked; there is at least one picture.
Result<PictureTables> make_picture_tables(std::span<const PictureSize> pictures,
                                          const PictureSettings& settings);

}  // namespace vkformer
