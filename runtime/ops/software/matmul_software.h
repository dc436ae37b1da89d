// Strategies of matrix products for the compilers of software devices (plan/compiler_traits.h):
// lavapipe streams weights and keeps wide tiles in registers, SwiftShader wants literal tiles and
// arrays of buffers.
#pragma once

#include "ops/matmul_strategy.h"
#include "ops/matmul_table.h"

namespace vkformer {

// Groups of 8 sums that a tile of matmul_wide may have: they pass through 16 KiB of shared memory.
inline constexpr uint32_t kWideSums = 512;
inline constexpr uint32_t kStreamedRows = 16;  // two tiles of matmul_stream; more gain nothing

// The row of kStream, kWide, kLiteral, kSlabs, kStationary or kStrided.
const MatmulStrategyRow& software_strategy_row(MatmulStrategy strategy);

// The table of a software device. Measured on lavapipe and SwiftShader (bench/results).
std::vector<MatmulTableRow> software_matmul_table(const DeviceCaps& caps);

}  // namespace vkformer
