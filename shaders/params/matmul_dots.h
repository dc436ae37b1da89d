// Specialization constants of the products of rows in bytes (byte_rows.h); their push constants are
// those of every product (matmul.h).
#ifndef VKFORMER_PARAMS_MATMUL_DOTS_H
#define VKFORMER_PARAMS_MATMUL_DOTS_H
#include "byte_rows.h"
#include "matmul.h"

#define VKF_MATMUL_DOTS_CONSTANTS(constant)                                                  \
  constant(0, kLocalSize, local_size, 8) /* kColumnLanes * kSlices */                        \
      constant(1, kRows, rows, 1) constant(2, kColumnLanes, column_lanes, 8)                 \
          constant(3, kSlices, slices, 1)                                                    \
              constant(4, kActivation, activation, 255) /* 255: as the push constants say */ \
      constant(5, kFormat, format, 3)                   /* MatrixFormat of B, in blocks */
VKF_CONSTANTS_STRUCT(MatmulDotsConstants, VKF_MATMUL_DOTS_CONSTANTS)

#define VKF_MATMUL_DOT_TILES_CONSTANTS(constant)                                                \
  constant(0, kLocalSize, local_size, 128)      /* 2 kBlock */                                  \
      constant(1, kBlock, block, 64)            /* rows and columns of a workgroup: 32 or 64 */ \
      constant(2, kTileM, tile_m, 8)            /* rows of an invocation: kBlock / 8 */         \
      constant(3, kActivation, activation, 255) /* 255: as the push constants say */            \
      constant(4, kFormat, format, 3)           /* MatrixFormat of B, in blocks */
VKF_CONSTANTS_STRUCT(MatmulDotTilesConstants, VKF_MATMUL_DOT_TILES_CONSTANTS)
#endif
