// Push constants of picture_values.
#ifndef VKFORMER_PARAMS_PICTURE_H
#define VKFORMER_PARAMS_PICTURE_H
#include "constants.h"
#include "types.h"

struct PictureValuesParams {
  uint_t width;         // of the result, pixels
  uint_t lines;         // of the result
  uint_t source_pitch;  // pixels from one source line to the next
  uint_t first_pixel;   // of the source, words
  uint_t taps;          // word of the tables where this direction's entries begin
  uint_t first_value;   // of the result, words; the last direction's
  uint_t swapped;       // 1: the first byte of a pixel is blue
  uint_t unused;
};
#ifdef __cplusplus
static_assert(sizeof(PictureValuesParams) == 32);
#endif

// Specialization constants (constants.h).
#define VKF_PICTURE_VALUES_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kLast, last, 0)
VKF_CONSTANTS_STRUCT(PictureValuesConstants, VKF_PICTURE_VALUES_CONSTANTS)
#endif
