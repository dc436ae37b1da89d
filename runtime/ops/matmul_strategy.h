// The strategies of matrix products: one row of a table for each. A row says which devices run a
// choice of the strategy, which products it takes, and how it is launched. The table in
// matmul_table.h says what is cheapest.
#pragma once

#include "ops/matmul_lowering.h"

namespace vkformer {

// A product on a device.
struct MatmulCall {
  const MatmulProblem& problem;
  const DeviceCaps& caps;
  bool halves = false;  // halves are multiplied where the strategy has kernels for it
  bool reproducible = false;
};

struct MatmulStrategyRow {
  // Whether the device has the kernel and its limits allow the tile.
  bool (*runs)(const MatmulChoice& choice, const DeviceCaps& caps);
  // Whether the layout and format of the operands fit.
  bool (*takes)(const MatmulCall& call, const MatmulChoice& choice);
  // Kernel, constants and groups. With parts > 0 the result is sums of parts (parts_of_k).
  void (*launch)(Dispatch& d, const MatmulCall& call, const MatmulChoice& choice, uint32_t parts);
  // parts_of_k; absent: K is never in parts.
  uint32_t (*parts)(const MatmulProblem& problem, const DeviceCaps& caps,
                    const MatmulChoice& choice) = nullptr;
};

// The row of a strategy.
const MatmulStrategyRow& strategy_row(MatmulStrategy strategy);

inline bool can_run(const MatmulChoice& choice, const DeviceCaps& caps) {
  return strategy_row(choice.strategy).runs(choice, caps);
}

// What strategies share.
inline constexpr uint32_t kMostFewRows = 8;   // rows that matmul_rows and matmul_stream take
inline constexpr uint32_t kGroupColumns = 8;  // columns of one load of B

// Rows of each of the passes, of equal height, that take m rows, at most `most` a pass. A software
// device has room for all rows in its vector registers.
uint32_t rows_of_pass(const DeviceCaps& caps, uint32_t m, uint32_t most);

// Whether halves are multiplied where a strategy has kernels for it. A few rows wait for memory, so
// that halves would gain nothing there.
inline bool multiplies_halves(const MatmulProblem& problem, const DeviceCaps& caps,
                              Precision precision) {
  return precision == Precision::kF16 && caps.fp16() && !in_blocks(problem.format) &&
         problem.params.m > kMostFewRows;
}

inline uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}
inline uint32_t format_of(const MatmulProblem& problem) {
  return static_cast<uint32_t>(problem.format);
}
// A and B as the packed layout has them: unit columns, rows of B that start on whole groups.
bool packed_like(const MatmulProblem& problem);
// Whole panels, as weights/pack.h makes them: any column of the last one may be read.
bool in_panels(const MatmulProblem& problem);
// 1 where offset and strides of A are multiples of 4.
uint32_t aligned_a(const MatmulParams& p);
// In a decoding step, the axis of the groups that counts live rows.
void set_live(Dispatch& d, const MatmulProblem& problem, int axis, uint32_t rows_per_group);

// The variants of a kernel by how the weight is stored.
struct MatmulVariants {
  KernelId f32, f16, blocks;
};
KernelId variant_of(MatrixFormat format, const MatmulVariants& variants);

// kAhead of matmul_rows for passes of that many rows.
uint32_t loads_ahead(const DeviceCaps& caps, uint32_t rows);

// Blocks of matmul_tiled: rows and columns of one, and how many a device wants to be filled.
uint32_t tiled_block(const MatmulProblem& problem, const MatmulChoice& choice);
// Rows of a block that an invocation has: with 4 columns, or 8 of blocks of 128, all of the block.
inline uint32_t tile_rows_of_invocation(uint32_t block) {
  return std::min(block / 8, 8u);
}
uint64_t blocks_of(const MatmulProblem& problem, uint32_t block);
uint64_t blocks_wanted(const DeviceCaps& caps);

// How a workgroup of matmul_units is made up: of how many subgroups along M and N. The narrower
// they are, the more of them, or a lane's sums would not fit in its registers; as far as the device
// goes.
struct UnitsGroup {
  uint32_t along_m = 1, along_n = 2;
  uint32_t count() const { return along_m * along_n; }
};
UnitsGroup units_group(const MatmulChoice& choice, const DeviceCaps& caps);

}  // namespace vkformer
