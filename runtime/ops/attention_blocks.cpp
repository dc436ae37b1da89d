#include "ops/attention_blocks.h"

#include <algorithm>

#include "ops/score_kinds.h"

namespace vkformer {
namespace {

constexpr uint32_t kKeyLanes = 8, kKeys = 32;  // of a tile, as in the shader

// What the kernel knows: no relative positions, no sparse terms, no report.
bool is_known(const AttentionAttrs& a) {
  return a.relative.kinds == 0 && !counts_keys(a) && !is_sparse(a.terms);
}

uint32_t fours(uint32_t width) {
  return (width + 3) / 4;
}

// Fours of value columns that an invocation sums for a query.
uint32_t lane_columns(const AttentionSizes& a) {
  return (fours(a.value_width) + kKeyLanes - 1) / kKeyLanes;
}

// As the shaders lay it out. It has queries, a stage of keys or values, weights, a float of every
// lane, a mark, and in chunks where keys stand.
uint64_t shared_bytes(const AttentionSizes& a, const AttentionBlocks& b) {
  const uint64_t keys = uint64_t{kKeys} * (b.stage_depth | 1);
  const uint64_t values = uint64_t{b.stage_keys} * lane_columns(a) * kKeyLanes;
  const uint64_t rows = uint64_t{b.rows()} * ((fours(a.head_width) | 1) + kKeyLanes + 1 + 2);
  return 16 * (rows + std::max(keys, values)) + 16 + 4 * kKeys;
}

// The largest stages that fit and leave room for other workgroups, or the smallest; nothing where
// these do not fit.
std::optional<AttentionBlocks> staged(const DeviceCaps& caps, const AttentionSizes& a,
                                      AttentionBlocks b) {
  constexpr uint32_t kLeastKeys = 4;
  const uint64_t wanted = std::min(caps.limits.max_shared_bytes, 32768u);
  for (uint32_t part = 1; kKeys / part >= kLeastKeys; part *= 2) {
    b.stage_depth = (fours(a.head_width) + part - 1) / part;
    b.stage_keys = kKeys / part;
    if (shared_bytes(a, b) <= wanted) return b;
  }
  if (shared_bytes(a, b) > caps.limits.max_shared_bytes) return std::nullopt;
  return b;
}

uint64_t groups_of(const AttentionSizes& a, const AttentionBlocks& b) {
  return (uint64_t{a.queries} + b.rows() - 1) / b.rows() * a.units;
}

}  // namespace

// Unmeasured. More queries in an invocation mean fewer loads for a product. There must be enough
// queries, enough workgroups for a GPU, and registers for the sums.
std::optional<AttentionBlocks> attention_blocks(const DeviceCaps& caps, const AttentionSizes& a) {
  if (caps.device_class == DeviceClass::kSoftware) return std::nullopt;
  const uint64_t wanted = caps.device_class == DeviceClass::kDiscrete ? 96 : 32;
  std::optional<AttentionBlocks> best;
  AttentionBlocks blocks;
  if (a.queries > kKeyLanes && caps.gpu.attention_queries < 4) blocks.local_size *= 2;
  for (uint32_t tile_m = caps.gpu.attention_queries; tile_m > 0; tile_m /= 2) {
    blocks.tile_m = tile_m;
    const bool wasted = blocks.rows() / 2 >= a.queries;
    const uint32_t floats = tile_m * (4 * lane_columns(a) + a.row_floats);
    if (tile_m > 1 && (wasted || floats > caps.gpu.attention_sums)) continue;
    const std::optional<AttentionBlocks> fit = staged(caps, a, blocks);
    if (!fit) continue;
    best = fit;
    if (groups_of(a, *fit) >= wanted) break;
  }
  if (best) return best;
  return staged(caps, a, {});  // half as many invocations
}

std::optional<AttentionBlocks> attention_blocks(const DeviceCaps& caps, const AttentionAttrs& a) {
  if (!is_known(a)) return std::nullopt;
  return attention_blocks(caps, AttentionSizes{.queries = a.queries,
                                               .units = uint64_t{a.batch} * a.heads,
                                               .head_width = a.head_width,
                                               .value_width = a.value_width});
}

AttentionStrategy attention_blocks_strategy(const AttentionAttrs& a, const AttentionBlocks& b) {
  const AttentionBlocksConstants constant{.local_size = b.local_size,
                                          .width = a.head_width,
                                          .value_width = a.value_width,
                                          .tile_m = b.tile_m,
                                          .stage_depth = b.stage_depth,
                                          .stage_keys = b.stage_keys,
                                          .kinds = score_kinds(a.terms),
                                          .softcap = softcap_bits(a.softcap),
                                          .quads = elements_of_load(a) >= 4};
  return {KernelId::attention_blocks__f32_f32_f32, b.rows(), constants(constant)};
}

}  // namespace vkformer
