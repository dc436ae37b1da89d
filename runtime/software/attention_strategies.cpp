#include <algorithm>
#include <bit>

#include "ops/row_kernel.h"
#include "ops/score_kinds.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

// What one lane of the lanes strategy holds in registers makes code that grows with it, and so does
// the time to compile it. A lane has two queries up to E + Ev columns, and one beyond.
constexpr uint32_t kMostPairedWidths = 192;
constexpr uint32_t kMostRelatedPairs = 64;  // of E or Ev, the same with relative positions
// Queries from which the faster pairs repay the time that they take longer to compile.
constexpr uint32_t kLeastPaired = 64;
constexpr uint32_t kKeysBesides = 64;  // rounds of a lane that are not keys

// Software devices of few lanes load a key's row by all lanes together. Those without 64-bit
// integers (SwiftShader) keep arrays in memory, where that is slow.
bool loads_by_lanes(const DeviceCaps& caps) {
  return caps.device_class == DeviceClass::kSoftware && caps.int64() &&
         (caps.subgroup_size == 4 || caps.subgroup_size == 8);
}

// Keys that a round of the lanes strategy takes, so few that no software device leaves its loops;
// 0: none are few enough. Relative positions come key by key, and so do sparse terms. Where a key
// is in a walk depends on the other queries of the group, and pairs of keys would with it.
uint32_t keys_of_round(const AttentionAttrs& a, uint32_t kinds) {
  const uint64_t keys = std::max(a.keys, a.most_visited);
  if ((kinds & VKF_KIND_SPARSE) != 0 || a.relative.kinds != 0) {
    return keys < kMostSoftwareIterations - kKeysBesides ? 1 : 0;
  }
  // Masks are read in its own loop, which skips what nobody sees.
  const uint64_t loops = (kinds & VKF_KIND_MASKS) != 0 ? 3 : 1;
  for (uint32_t round = 2; round <= 8; round *= 2) {
    if (loops * (keys / round) < kMostSoftwareIterations - kKeysBesides - keys / 32) return round;
  }
  return 0;
}

// Whether the strategy of lanes knows these relative positions. A row is multiplied by all lanes at
// once, which only keys in order allow. Every distance is a round of its loop. Rows for keys differ
// from lane to lane.
bool lanes_can_relate(const AttentionAttrs& a) {
  if (a.relative.kinds == 0) return true;
  constexpr uint32_t kUnknown = VKF_RELATIVE_VALUES | VKF_RELATIVE_QUERIES;
  return !is_sparse(a.terms) && (a.relative.kinds & kUnknown) == 0 &&
         a.keys < kMostSoftwareIterations / 2 - kKeysBesides;
}

// Software devices pay as much for a load as for many products, so there every lane holds whole
// queries in registers. Others share tiles in shared memory. So do software devices without 64-bit
// integers (SwiftShader), which store arrays in memory. nullopt: tiles.
std::optional<AttentionStrategy> pick_lanes(const DeviceCaps& caps, const AttentionAttrs& a) {
  if (!loads_by_lanes(caps) || a.queries == 1 || !lanes_can_relate(a)) return std::nullopt;
  const uint32_t lanes = caps.subgroup_size;
  uint32_t kinds = score_kinds(a.terms);
  const uint32_t round = keys_of_round(a, kinds);
  if (round == 0) return std::nullopt;
  if (a.keys % round != 0) kinds |= VKF_KIND_NEAR;  // the keys that a last round lacks are masked
  const uint32_t width = std::max(a.head_width, a.value_width);
  const bool few = a.relative.kinds != 0 ? width <= kMostRelatedPairs
                                         : a.head_width + a.value_width <= kMostPairedWidths;
  const uint32_t per_lane = a.queries >= kLeastPaired && few ? 2 : 1;
  return AttentionStrategy{KernelId::attention_lanes__f32_f32_f32_subgroup_int64, lanes * per_lane,
                           constants(AttentionLanesConstants{.local_size = lanes,
                                                             .queries = per_lane,
                                                             .width = a.head_width,
                                                             .value_width = a.value_width,
                                                             .kinds = kinds,
                                                             .softcap = softcap_bits(a.softcap),
                                                             .relative = a.relative.kinds,
                                                             .counting = counts_keys(a),
                                                             .keys = round,
                                                             .run = elements_of_load(a)})};
}

// Keys and values pass by queries that stay, and each row is its own buffer. This is for the
// compiler that wants literals, and heads of the one width that the kernel has literals for.
std::optional<AttentionStrategy> pick_stationary(const DeviceCaps& caps, const AttentionAttrs& a) {
  constexpr uint32_t kQueries = 4, kWidth = 64, kKeys = 4;
  const auto whole = [](const HeadLayout& x) {
    return (x.offset | x.batch_stride | x.head_stride | x.row_stride) % kWidth == 0;
  };
  const auto rows = [&](const HeadLayout& x) {
    return (x.offset + uint64_t{a.batch} * x.batch_stride) / kWidth;
  };
  if (!caps.compiler.wants_literals || !caps.tables() || a.queries < kQueries ||
      is_sparse(a.terms) || a.relative.kinds != 0 || counts_keys(a) || a.head_width != kWidth ||
      a.value_width != kWidth || !whole(a.k) || !whole(a.v) ||
      std::max(rows(a.k), rows(a.v)) > caps.compiler.max_table_parts) {
    return std::nullopt;
  }
  uint32_t kinds = score_kinds(a.terms);
  if (a.keys % kKeys != 0) kinds |= VKF_KIND_NEAR;  // the keys that a last round lacks are masked
  return AttentionStrategy{
      KernelId::attention_stationary__f32_f32_f32_tables, kQueries,
      constants(AttentionStationaryConstants{.kinds = kinds, .softcap = softcap_bits(a.softcap)}),
      kWidth * 4};
}

// The tiled strategy with its rows handed round by quads, a value column to an invocation.
std::optional<AttentionStrategy> pick_literal(const DeviceCaps& caps, const AttentionAttrs& a) {
  const uint32_t most =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  if (!caps.literal_tiles() || a.queries == 1 || a.value_width > most || !starts_in_quads(a) ||
      is_sparse(a.terms) || a.relative.kinds != 0 || counts_keys(a)) {
    return std::nullopt;
  }
  const uint32_t local = tiled_local_size(caps, a);
  if (local == 0) return std::nullopt;
  // The other constants are literals there.
  return AttentionStrategy{
      KernelId::attention_literal__f32_f32_f32_subgroup, kTiledQueries,
      constants(AttentionTiledConstants{.local_size = std::max(local, std::bit_ceil(a.value_width)),
                                        .width = a.head_width,
                                        .value_width = a.value_width,
                                        .softcap = softcap_bits(a.softcap)})};
}

}  // namespace

std::optional<AttentionStrategy> software_attention(const DeviceCaps& caps,
                                                    const AttentionAttrs& attrs) {
  for (const auto pick : {pick_lanes, pick_stationary, pick_literal}) {
    if (std::optional<AttentionStrategy> strategy = pick(caps, attrs)) return strategy;
  }
  return std::nullopt;
}

bool software_attention_step(const DeviceCaps& caps, const AttentionStepAttrs& attrs,
                             const AttentionStepLaunch& launch, Dispatch& d) {
  // Sinks meet a query of their own, which the kernel does not know. Its loops over columns are
  // unrolled, which takes compilers minutes for wider heads.
  const bool wide = std::max(attrs.head_width, attrs.value_width) > kMaxHeadWidth;
  if (!loads_by_lanes(caps) || attrs.sink_q_offset || wide) return false;
  d.kernel = launch.format == CacheFormat::kF32
                 ? KernelId::attention_decode_lanes__f32_f32_f32_subgroup_int64
                 : KernelId::attention_decode_lanes__f32_packed_f32_subgroup_int64;
  d.set_constants(AttentionDecodeLanesConstants{
      .local_size = caps.subgroup_size,
      .width = attrs.head_width,
      .value_width = attrs.value_width,
      .cross = attrs.source == AttentionStepAttrs::Source::kCross ? 1u : 0u,
      .run = widest_load(attrs.head_width | attrs.value_width | attrs.value_offset()),
      .rolls = launch.rolls,
      .softcap = softcap_bits(attrs.softcap),
      .heads = launch.heads,
      .part_keys = launch.part_keys,
      .parts = launch.parts,
      .cache_format = static_cast<uint32_t>(launch.format)});
  return true;
}

std::optional<KernelId> software_lsh_hash(const DeviceCaps& caps, uint32_t local_size) {
  if (caps.device_class != DeviceClass::kSoftware || !caps.subgroup() ||
      local_size != caps.subgroup_size || (local_size != 4 && local_size != 8)) {
    return std::nullopt;
  }
  return KernelId::lsh_hash_token__f32_f32_u32_subgroup;
}

}  // namespace vkformer
