// Attention of GPUs in f32 by blocks of queries and keys (shaders/attention_blocks.comp): when it
// is chosen, and how it is launched.
#pragma once

#include <optional>

#include "ops/attention_strategy.h"

namespace vkformer {

// The shares of an invocation and of shared memory.
struct AttentionBlocks {
  uint32_t local_size = 64;
  uint32_t tile_m = 1;       // queries of an invocation
  uint32_t stage_depth = 1;  // fours of E that are in shared memory at a time
  uint32_t stage_keys = 4;   // keys whose values are

  uint32_t rows() const { return local_size / 8 * tile_m; }  // queries of a workgroup
  bool operator==(const AttentionBlocks&) const = default;
};

// The table: what shares attention takes on a device. nullopt: another strategy does it, as for
// sparse terms, relative positions, counts, and on software devices.
std::optional<AttentionBlocks> attention_blocks(const DeviceCaps& caps,
                                                const AttentionAttrs& attrs);

AttentionStrategy attention_blocks_strategy(const AttentionAttrs& attrs,
                                            const AttentionBlocks& blocks);

}  // namespace vkformer
