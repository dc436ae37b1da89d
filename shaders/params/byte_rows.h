// How rows of activations lie in memory as signed bytes. They are in blocks of 32 steps of K
// (kBlockSteps of
// weight_blocks.h). A product of integers multiplies them with the blocks of a weight.
//
// A row has, in 32-bit words:
//   8 for every block: word i has steps 4 i to 4 i + 3, byte s the signed value of step s.
//   Then 2 for every block. The first is the scale in f32. The second has two signed sums of
//     values:
//   of the first 16 steps in its low half, of the others in its high half.
// An element is scale * value. The last block is filled up with zeros. A block with an infinity or
// a NaN has zeros for values and a NaN for scale, so that its row's products are NaN.
#ifndef VKFORMER_PARAMS_BYTE_ROWS_H
#define VKFORMER_PARAMS_BYTE_ROWS_H
#include "constants.h"
#include "types.h"
#ifdef __cplusplus
#define VKF_BYTE_ROWS_CONSTANT(type, name, value) inline constexpr type name = value
#else
#define VKF_BYTE_ROWS_CONSTANT(type, name, value) const type name = value
#endif
VKF_BYTE_ROWS_CONSTANT(uint_t, kByteRowWords, 8u);  // of values, of a block
VKF_BYTE_ROWS_CONSTANT(uint_t, kByteRowFacts, 2u);  // words of a block's scale and sums
VKF_BYTE_ROWS_CONSTANT(float_t, kLargestByte, 127.0f);
// 2^-119. Blocks whose largest element is smaller are zeros: 127 over it, or their scale, would not
// be a normal number.
VKF_BYTE_ROWS_CONSTANT(float_t, kSmallestPeak, 1.504632769052528e-36f);
#undef VKF_BYTE_ROWS_CONSTANT

struct QuantizeRowsParams {
  uint_t rows;
  uint_t k;
  uint_t x_offset;      // elements
  uint_t x_row_stride;  // elements
  uint_t blocks;        // of a row
  uint_t y_row_stride;  // words
};
#ifdef __cplusplus
static_assert(sizeof(QuantizeRowsParams) == 24);
#endif

#define VKF_QUANTIZE_ROWS_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64)     \
      constant(1, kAlignedA, aligned_a, 0) /* 1: rows of X begin at multiples of 4 */
VKF_CONSTANTS_STRUCT(QuantizeRowsConstants, VKF_QUANTIZE_ROWS_CONSTANTS)
#endif
