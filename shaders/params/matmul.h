// Push constants of the matrix-product kernels: Y (M, N) = A (M, K) * B (K, N) and what is fused.
//
// Offsets and strides count elements of their own matrix, but for bias_offset, which counts 32-bit
// words of the weight binding: a packed f16 matrix and its f32 bias lie in one binding.
#ifndef VKFORMER_PARAMS_MATMUL_H
#define VKFORMER_PARAMS_MATMUL_H
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
// A packed weight lies in panels: so many columns of B, all steps of k of which follow each other,
// so that a workgroup streams memory instead of touching a new page with every step.
const uint kPanelColumns = 64u;
// Of kTerms of the kernels with a table: what is added, and whether anything follows the sums.
const uint kTermBias = 1u, kTermAddend = 2u, kTermFinish = 4u;
const uint kSlabSteps = 8u;    // of K, of a panel: what matmul_slabs reads behind one address
const uint kHeldSteps = 128u;  // of K, of a row: what matmul_stationary reads behind one address
// What kNorm of matmul_rows may be: the norm of A's rows in front of the product.
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

  float_t norm_epsilon;  // of the norm in front of a product of few rows (kNorm), else unused
};
#ifdef __cplusplus
static_assert(sizeof(MatmulParams) == 96);
#endif
#endif
