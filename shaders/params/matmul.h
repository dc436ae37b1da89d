// Push constants of the matrix-product kernels: Y (M, N) = A (M, K) * B (K, N) and what is fused.
//
// Offsets and strides count elements of their own matrix, but for bias_offset, which counts 32-bit
// words of the weight binding. A packed f16 matrix and its f32 bias lie in one binding.
#ifndef VKFORMER_PARAMS_MATMUL_H
#define VKFORMER_PARAMS_MATMUL_H
#include "constants.h"
#include "types.h"
#ifdef __cplusplus
inline constexpr uint32_t kMatmulNone = 0xffffffffu;
inline constexpr uint32_t kPanelColumns = 64;
inline constexpr uint32_t kSlabSteps = 8;
inline constexpr uint32_t kHeldSteps = 128;
inline constexpr uint32_t kTermBias = 1, kTermAddend = 2, kTermFinish = 4;
inline constexpr uint32_t kNormNone = 0, kNormRms = 1, kNormLayer = 2;
#else
const uint kMatmulNone = 0xffffffffu;  // bias_offset or c_offset of an operand that is absent
// A packed weight is stored in panels of this number of columns of B. All steps of k of a panel
// follow each other, so that a workgroup streams memory instead of touching a new page with every
// step.
const uint kPanelColumns = 64u;
// Of kTerms of the kernels with a table: what is added, and whether anything follows the sums.
const uint kTermBias = 1u, kTermAddend = 2u, kTermFinish = 4u;
const uint kSlabSteps = 8u;    // of K, of a panel: what matmul_slabs reads from one address
const uint kHeldSteps = 128u;  // of K, of a row: what matmul_stationary reads from one address
// What kNorm of matmul_rows may be: the norm of A's rows before the product.
const uint kNormNone = 0u, kNormRms = 1u, kNormLayer = 2u;
#endif

struct MatmulParams {
  uint_t m;  // rows of A and Y
  uint_t n;  // columns of B and Y
  uint_t k;  // columns of A, rows of B

  uint_t a_offset;
  uint_t a_row_stride;
  uint_t a_col_stride;  // read by matmul_tiled only; the others want 1
  uint_t a_batch_stride;

  uint_t b_offset;
  uint_t b_row_stride;  // from one step of k to the next
  uint_t b_col_stride;  // read by matmul_tiled only; the others want 1
  uint_t b_batch_stride;
  uint_t b_panel_stride;  // from one panel of kPanelColumns columns to the next

  uint_t bias_offset;  // where N f32 values lie, in 32-bit words of B's binding; or kMatmulNone

  uint_t c_offset;      // or kMatmulNone
  uint_t c_row_stride;  // 0: one row of N for all
  uint_t c_batch_stride;
  uint_t c_after;  // 0: act(alpha AB + beta C + bias), 1: act(alpha AB + bias) + beta C

  uint_t y_offset;
  uint_t y_row_stride;
  uint_t y_batch_stride;

  float_t alpha;
  float_t beta;
  uint_t activation;  // kActivation*, read where the kernel's constant leaves it open

  float_t norm_epsilon;  // of the norm before a product of few rows (kNorm), else unused
};
#ifdef __cplusplus
static_assert(sizeof(MatmulParams) == 96);
#endif

// Specialization constants (constants.h).
#define VKF_MATMUL_ROWS_SIZES(constant)                                           \
  constant(0, kLocalSize, local_size, 8) /* kColumnLanes * kSlices */             \
      constant(1, kRows, rows, 1) constant(2, kColumnLanes, column_lanes, 8)      \
          constant(3, kSlices, slices, 1)                                         \
              constant(4, kNorm, norm, 0) /* kNormNone, kNormRms or kNormLayer */ \
      constant(5, kAhead, ahead, 1)       /* runs of 4 steps of K that are loaded together */
#define VKF_MATMUL_ROWS_SWITCHES(constant)                                           \
  constant(6, kAlignedA, aligned_a, 1)                                               \
      constant(7, kActivation, activation, 255) /* 255: as the push constants say */ \
      constant(8, kFormat, format, 0)           /* MatrixFormat, where the weight is in blocks */
#define VKF_MATMUL_ROWS_CONSTANTS(constant) \
  VKF_MATMUL_ROWS_SIZES(constant)           \
  VKF_MATMUL_ROWS_SWITCHES(constant)
VKF_CONSTANTS_STRUCT(MatmulRowsConstants, VKF_MATMUL_ROWS_CONSTANTS)

#define VKF_MATMUL_STREAM_CONSTANTS(constant)                                                    \
  constant(0, kLanes, lanes, 8) constant(1, kRows, rows, 1) constant(2, kAlignedA, aligned_a, 1) \
      constant(3, kActivation, activation, 255) /* 255: as the push constants say */             \
      constant(4, kFormat, format, 0)           /* MatrixFormat, where the weight is in blocks */
VKF_CONSTANTS_STRUCT(MatmulStreamConstants, VKF_MATMUL_STREAM_CONSTANTS)

#define VKF_MATMUL_WIDE_SIZES(constant)                                                      \
  constant(0, kLanes, lanes, 8) constant(1, kRows, rows, 14) constant(2, kGroups, groups, 2) \
      constant(3, kAlignedA, aligned_a, 1)
#define VKF_MATMUL_WIDE_SWITCHES(constant)                                       \
  constant(4, kActivation, activation, 255) /* 255: as the push constants say */ \
      constant(5, kFormat, format, 0)       /* MatrixFormat, where the weight is in blocks */
#define VKF_MATMUL_WIDE_CONSTANTS(constant) \
  VKF_MATMUL_WIDE_SIZES(constant)           \
  VKF_MATMUL_WIDE_SWITCHES(constant)
VKF_CONSTANTS_STRUCT(MatmulWideConstants, VKF_MATMUL_WIDE_CONSTANTS)

#define VKF_MATMUL_SLABS_CONSTANTS(constant)                                     \
  constant(0, kActivation, activation, 255) /* 255: as the push constants say */ \
      constant(1, kTerms, terms, 3)         /* kTermBias, kTermAddend: what is added */
VKF_CONSTANTS_STRUCT(MatmulSlabsConstants, VKF_MATMUL_SLABS_CONSTANTS)

#define VKF_MATMUL_STATIONARY_CONSTANTS(constant)                                \
  constant(0, kActivation, activation, 255) /* 255: as the push constants say */ \
      constant(1, kTerms, terms, 7)         /* kTerm*: what follows the sums */  \
      constant(2, kRows, rows, 512)                                              \
          constant(3, kFormat, format, 0) /* of B: 0 f32, 1 f16, else weight_blocks.h */
VKF_CONSTANTS_STRUCT(MatmulStationaryConstants, VKF_MATMUL_STATIONARY_CONSTANTS)

#define VKF_MATMUL_TILED_CONSTANTS(constant)                                                       \
  constant(0, kLocalSize, local_size, 128) /* 2 kBlock */                                          \
      constant(1, kBlock, block, 64) constant(2, kTileM, tile_m, 8) constant(3, kTileN, tile_n, 4) \
          constant(4, kActivation, activation, 255) /* 255: as the push constants say */           \
      constant(5, kAlongM, along_m, 0)              /* 1 where a_row_stride is 1 (A transposed) */ \
      constant(6, kAlongK, along_k, 0)              /* 1 where b_row_stride is 1 (B transposed) */ \
      constant(7, kWide, wide, 0)                   /* kWideA, kWideB, kWholeSteps */              \
      constant(8, kParts, parts, 1)                                                                \
          constant(9, kFormat, format, 0) /* MatrixFormat, where the weight is in blocks */
VKF_CONSTANTS_STRUCT(MatmulTiledConstants, VKF_MATMUL_TILED_CONSTANTS)

#define VKF_MATMUL_UNITS_CONSTANTS(constant)                                                 \
  constant(0, kLocalSize, local_size, 128) constant(1, kBlockM, block_m, 64)                 \
      constant(2, kBlockN, block_n, 64)                                                      \
          constant(3, kAlignedA, aligned_a, 0)  /* 1: rows of A begin at multiples of 4 */   \
      constant(4, kActivation, activation, 255) /* 255: as the push constants say */         \
      constant(5, kUnitM, unit_m, 16) constant(6, kUnitN, unit_n, 16)                        \
          constant(7, kUnitK, unit_k, 16)                                                    \
              constant(8, kFormat, format, 0) /* of B: 0 f32, 1 f16, else weight_blocks.h */ \
      constant(9, kSubgroupsM, subgroups_m, 2) constant(10, kSubgroupsN, subgroups_n, 2)
VKF_CONSTANTS_STRUCT(MatmulUnitsConstants, VKF_MATMUL_UNITS_CONSTANTS)

#define VKF_MATMUL_PARTS_CONSTANTS(constant) \
  constant(0, kLocalSize, local_size, 64)    \
      constant(1, kActivation, activation, 255) /* 255: as the push constants say */
VKF_CONSTANTS_STRUCT(MatmulPartsConstants, VKF_MATMUL_PARTS_CONSTANTS)
#endif
