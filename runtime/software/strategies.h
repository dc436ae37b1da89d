// Strategies for the compilers of software devices (plan/compiler_traits.h). Lavapipe streams
// weights and keeps wide tiles in registers, SwiftShader wants literal tiles and arrays of buffers.
// Operators ask here first and fall back to the kernels that every device takes.
//
// A build with VKFORMER_WITH_SOFTWARE_KERNELS=OFF links absent.cpp in place of this room. There no
// device has such a strategy, and a software device runs the kernels for hardware.
#pragma once

#include <optional>
#include <vector>

#include "ops/attention_step.h"
#include "ops/attention_strategy.h"
#include "ops/matmul_strategy.h"
#include "ops/matmul_table.h"

namespace vkformer {

// Whether this build has them.
bool has_software_strategies();

// The row of kStream, kWide, kLiteral, kSlabs, kStationary or kStrided.
const MatmulStrategyRow& software_strategy_row(MatmulStrategy strategy);
// The table of a software device; empty: it takes the table for hardware. Measured on lavapipe and
// SwiftShader (bench/results).
std::vector<MatmulTableRow> software_matmul_table(const DeviceCaps& caps);
// What the tuner may try for products of M rows; not all of it runs on the device.
std::vector<MatmulChoice> software_matmul_candidates(uint32_t m);

// nullopt: the device or the attention has none.
std::optional<AttentionStrategy> software_attention(const DeviceCaps& caps,
                                                    const AttentionAttrs& attrs);
// Sets kernel and constants of a decoding step. False: `d` is as it was.
bool software_attention_step(const DeviceCaps& caps, const AttentionStepAttrs& attrs,
                             const AttentionStepLaunch& launch, Dispatch& d);
// The kernel of lsh_hash for workgroups of `local_size`.
std::optional<KernelId> software_lsh_hash(const DeviceCaps& caps, uint32_t local_size);

}  // namespace vkformer
