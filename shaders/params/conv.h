// Push constants of unfold, max_pool and conv: a picture by its strides, and the window that goes
// over it.
#ifndef VKFORMER_PARAMS_CONV_H
#define VKFORMER_PARAMS_CONV_H
#include "constants.h"
#include "types.h"

// A picture (B, C, H, W) in any order of axes, and the positions of a kernel over it. Pixels
// outside the picture count as 0.
struct ConvPicture {
  uint_t height;          // H, pixels
  uint_t width;           // W, pixels
  uint_t offset;          // elements before the first picture
  uint_t batch_stride;    // elements
  uint_t row_stride;      // elements
  uint_t col_stride;      // elements
  uint_t channel_stride;  // elements
  uint_t kernel_height;   // pixels
  uint_t kernel_width;    // pixels
  uint_t stride_height;   // pixels between two positions
  uint_t stride_width;
  uint_t pad_top;  // pixels of zeros before the first row
  uint_t pad_left;
  uint_t out_height;  // positions
  uint_t out_width;
};

struct UnfoldParams {
  ConvPicture picture;
  uint_t rows;     // B * OH * OW
  uint_t columns;  // C * kernel_height * kernel_width
  // From a column to the one kLocalSize further, as digits (channel, y, x) of the kernel.
  uint_t step_channel;
  uint_t step_y;
  uint_t step_x;
  uint_t dilation;  // pixels between two columns of the kernel
  float_t slope;    // multiplies what is below 0, with VKF_SLOPED
};

struct PoolParams {
  ConvPicture picture;
  uint_t rows;      // B * OH * OW
  uint_t channels;  // C
};

struct ConvParams {
  ConvPicture picture;
  uint_t spans;             // B * OH * ceil(OW / kSpan)
  uint_t channels;          // output channels
  uint_t group_channels;    // output channels of a group
  uint_t group_inputs;      // input channels of a group
  uint_t y_offset;          // elements
  uint_t y_batch_stride;    // elements
  uint_t y_row_stride;      // elements
  uint_t y_col_stride;      // elements
  uint_t y_channel_stride;  // elements
  uint_t leading;           // tokens before each image, copied
  uint_t copies;            // B * leading
};
#ifdef __cplusplus
static_assert(sizeof(ConvPicture) == 60);
static_assert(sizeof(UnfoldParams) == 88);
static_assert(sizeof(PoolParams) == 68);
static_assert(sizeof(ConvParams) == 104);
#endif

// Specialization constants (constants.h).
#define VKF_CONV_CONSTANTS(constant)                                  \
  constant(0, kLocalSize, local_size, 64) constant(1, kSpan, span, 4) \
      constant(2, kChunk, chunk, 64) constant(3, kActivation, activation, 0)
VKF_CONSTANTS_STRUCT(ConvConstants, VKF_CONV_CONSTANTS)
#endif
