// Push constants of embedding.
#ifndef VKFORMER_PARAMS_EMBEDDING_H
#define VKFORMER_PARAMS_EMBEDDING_H
#include "constants.h"
#include "types.h"
#ifdef __cplusplus
inline constexpr uint32_t kNormWidth = 2048;
#else
const uint kNormWidth =
    2048u;  // widest row whose norm's gain and bias fit a uniform block of 16 KiB
#endif

struct EmbeddingParams {
  uint_t rows;             // R, ids
  uint_t width;            // D
  uint_t vocabulary;       // V, rows of the table
  uint_t first_id;         // of the first row of the bound table
  uint_t slice_rows;       // rows of the bound table
  uint_t row_stride;       // elements from one table row to the next
  uint_t col_stride;       // elements from one column to the next
  uint_t positions;        // P, rows of the position table that are positions; 0: none
  uint_t tokens;           // T: row r stands at token r % T
  uint_t position_offset;  // tokens, added to the position
  float_t scale;           // multiplies the table's row, not the position's
  uint_t panel_stride;     // elements from 64 table rows to the next 64
  uint_t position_plane;   // plane of Ids with the positions; 0: they are counted
  uint_t type_plane;       // plane of Ids with the token types; 0: none
  uint_t type_row;         // row of the position table where the types begin
  uint_t types;            // rows of the position table that are types
  uint_t pad_id;           // in a step, the id that stands one row before position 0; ~0: none
  float_t norm_epsilon;    // of the norm after it, in the variants that have one
  uint_t scale_plane;      // plane of Ids with the bits of a scale of each row; 0: none
};
#ifdef __cplusplus
static_assert(sizeof(EmbeddingParams) == 76);
#endif

// Specialization constants (constants.h).
#define VKF_EMBEDDING_CONSTANTS(constant)                                              \
  constant(0, kLocalSize, local_size, 64) constant(1, kHasPositions, has_positions, 0) \
      constant(2, kHasTypes, has_types, 0)                                             \
          constant(3, kFormat, format, 0) /* MatrixFormat, where the weight is in blocks */
VKF_CONSTANTS_STRUCT(EmbeddingConstants, VKF_EMBEDDING_CONSTANTS)
#endif
