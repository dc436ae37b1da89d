// Push constants of the kernels that move and mix rows: gather_rows, concat_columns, combine.
#ifndef VKFORMER_PARAMS_ROW_MOVES_H
#define VKFORMER_PARAMS_ROW_MOVES_H
#include "constants.h"
#include "types.h"

struct GatherRowsParams {
  uint_t rows;         // N, rows of the output
  uint_t width;        // D
  uint_t source_rows;  // R
  uint_t addend_rows;  // P; output row n gets addend row n % P
};

struct ConcatColumnsParams {
  uint_t rows;
  uint_t a_width;  // Da
  uint_t b_width;  // Db
  uint_t unused;
};

struct CombineParams {
  uint_t rows;
  uint_t width;   // elements of a row
  uint_t count;   // elements in all; the last row may be ragged
  float_t alpha;  // multiplies a
  float_t beta;   // multiplies b
  float_t most;   // limits b, where kLimited
  uint_t unused[2];
};
#ifdef __cplusplus
static_assert(sizeof(GatherRowsParams) == 16);
static_assert(sizeof(ConcatColumnsParams) == 16);
static_assert(sizeof(CombineParams) == 32);
#endif

// Specialization constants (constants.h).
#define VKF_RUN_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 512)
VKF_CONSTANTS_STRUCT(RunConstants, VKF_RUN_CONSTANTS)

#define VKF_COMBINE_CONSTANTS(constant)                                   \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 512) \
      constant(2, kLimited, limited, 0)
VKF_CONSTANTS_STRUCT(CombineConstants, VKF_COMBINE_CONSTANTS)

#define VKF_GATHER_ROWS_CONSTANTS(constant)                               \
  constant(0, kLocalSize, local_size, 64) constant(1, kChunk, chunk, 512) \
      constant(2, kHasAddend, has_addend, 0)
VKF_CONSTANTS_STRUCT(GatherRowsConstants, VKF_GATHER_ROWS_CONSTANTS)
#endif
