// Attention of GPUs in f32 by blocks of queries and keys (shaders/attention_blocks.comp; in chunks
// shaders/chunk_attention_blocks.comp). The file says when it is chosen, and how it is launched.
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

// What the shares depend on.
struct AttentionSizes {
  uint32_t queries = 1;  // of a unit: they see the same keys
  uint64_t units = 1;
  uint32_t head_width = 1;   // E
  uint32_t value_width = 1;  // Ev
  uint32_t row_floats = 0;   // registers of an invocation for each of its queries, beside the sums
};

// The table: what shares attention takes on a device. nullopt: none fits, or it is a software
// device.
std::optional<AttentionBlocks> attention_blocks(const DeviceCaps& caps,
                                                const AttentionSizes& sizes);

// The same of an attention node. nullopt also where another strategy does it, as for sparse terms,
// relative positions and counts.
std::optional<AttentionBlocks> attention_blocks(const DeviceCaps& caps,
                                                const AttentionAttrs& attrs);

AttentionStrategy attention_blocks_strategy(const AttentionAttrs& attrs,
                                            const AttentionBlocks& blocks);

}  // namespace vkformer
