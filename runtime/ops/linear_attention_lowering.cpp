#include "ops/linear_attention_lowering.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/message.h"
#include "ops/attention_step.h"
#include "ops/linear_state.h"
#include "ops/row_kernel.h"

namespace vkformer {
namespace {

using Map = LinearFeatureAttrs::Map;

constexpr uint32_t kSharedWords = 3072;  // that a workgroup may take
// Keys of a causal chunk. Its state takes M Ev numbers, and the features of its keys and queries
// 2 M for each of its tokens. These are about as many, unless values are wide.
constexpr uint32_t kChunk = 64;
constexpr uint32_t kWideChunk = 128;

uint32_t u32(uint64_t value) {
  return static_cast<uint32_t>(value);
}

uint32_t round_up(uint64_t value, uint32_t to) {
  return u32((value + to - 1) / to);
}

// One node's launches: some heads after another, where the scratch memory of all would be too much.
struct Launch {
  LowerContext& context;
  const Node& node;
  const LinearAttentionAttrs& a;
  LinearSizes sizes;
  uint32_t first_unit = 0;
  uint32_t units = 0;
  uint32_t features = 0;  // scratch (units, T, M), (units, S, M + 1)
  uint32_t states = 0;    // scratch (units, chunks, W)
  uint32_t total = 0;     // (B, H, W), or a prompt's states

  bool causal() const { return a.causal == LinearAttentionAttrs::Causal::kYes; }
  bool prompt() const { return node.outputs[1] != kNoTensor; }
  bool fades() const { return linear_fades(a.features); }
  bool has_one() const { return linear_has_one(a.features); }
  uint32_t k_offset() const { return units * a.queries * sizes.features; }
  double pairs() const { return static_cast<double>(units) * sizes.features; }
};

// Tokens of a workgroup that makes features: the more, the less often omega is read. Every row is
// computed by itself, whatever their number.
uint32_t feature_rows(const DeviceCaps& caps, uint32_t lanes, uint32_t head_width,
                      uint32_t tokens) {
  const uint32_t most = caps.device_class == DeviceClass::kSoftware ? 16 : 8;
  const uint32_t fit = std::bit_floor(kSharedWords / (lanes + head_width));
  return std::min({most, fit, std::bit_ceil(tokens)});
}

void emit_features(const Launch& l) {
  const LinearAttentionAttrs& a = l.a;
  const bool masked = l.node.inputs[2] != kNoTensor;
  const TensorId omega = l.node.inputs[1] == kNoTensor ? l.node.inputs[0] : l.node.inputs[1];
  const double root = std::sqrt(std::sqrt(static_cast<double>(a.head_width)));
  const LinearFeaturesParams params{.q = a.q,
                                    .k = a.k,
                                    .v = a.v,
                                    .heads = a.heads,
                                    .first_unit = l.first_unit,
                                    .units = l.units,
                                    .queries = a.queries,
                                    .keys = a.keys,
                                    .features = l.sizes.map_features,
                                    .value_width = a.value_width,
                                    .k_offset = l.k_offset(),
                                    .v_offset = 0,
                                    .scale = static_cast<float>(1.0 / root),
                                    .kernel_eps = a.features.kernel_eps};
  Dispatch d = make_dispatch(l.node, KernelId::linear_attention_features__f32_f32_f32);
  d.bindings = {{l.node.inputs[0], Access::kRead},
                {omega, Access::kRead},
                {masked ? l.node.inputs[2] : omega, Access::kRead},
                {l.features, Access::kReadWrite}};
  d.set_push(params);
  const uint32_t lanes = linear_feature_lanes(l.context.caps, params.features, a.head_width);
  const uint32_t rows =
      feature_rows(l.context.caps, lanes, a.head_width, std::max(a.queries, a.keys));
  d.set_constants(
      LinearFeaturesConstants{.local_size = lanes,
                              .rows = rows,
                              .width = a.head_width,
                              .map = linear_map(a.features),
                              .has_one = l.has_one(),
                              .has_mask = masked,
                              .step = 0,
                              .spread = linear_feature_spread(a.features, params.features, lanes)});
  const uint64_t tiles = round_up(std::max(a.queries, a.keys), rows);
  set_row_groups(l.context, d, l.units * tiles, 1);
  d.groups[2] = 2;
  const double tokens = static_cast<double>(a.queries) + a.keys;
  const double work = a.features.map == Map::kFavor ? 2.0 * a.head_width + 8 : 8;
  d.flops = l.pairs() * tokens * work;
  d.bytes = 8.0 * l.pairs() * tokens;
  l.context.plan.dispatches.push_back(std::move(d));
}

void emit_states(const Launch& l) {
  const LinearAttentionAttrs& a = l.a;
  const LinearSizes& s = l.sizes;
  StateSum sum{.x = l.node.inputs[0],
               .features = l.features,
               .mask = l.node.inputs[2],
               .states = l.states,
               .total = l.total,
               .value_width = a.value_width,
               .causal = l.causal(),
               .fades = l.fades(),
               .has_one = l.has_one()};
  sum.state = {.v = a.v,
               .f_offset = l.k_offset(),
               .f_unit_stride = a.keys * (s.features + 1),
               .f_head_stride = 0,
               .f_token_stride = s.features + 1,
               .f_feature_stride = 1,
               .heads = a.heads,
               .first_unit = l.first_unit,
               .units = l.units,
               .keys = a.keys,
               .chunk = s.chunk,
               .chunks = s.chunks,
               .features = s.features,
               .out_offset = 0};
  const uint32_t line = a.heads * s.state_words;
  sum.scan = {.heads = a.heads,
              .first_unit = l.first_unit,
              .units = l.units,
              .chunks = s.chunks,
              .fading = s.map_features * (a.value_width + 1),
              .state_words = s.state_words,
              .total_offset = 0,
              .total_item_stride = l.prompt() ? 2 * a.beams * line : line,
              .total_head_stride = s.state_words,
              .total_copy_stride = line,
              .copies = l.prompt() ? 2u : 1u};
  emit_state_sum(l.context, l.node, sum);
}

// What a workgroup of the output kernel owns.
struct OutputTile {
  uint32_t lanes = 1;
  uint32_t rows = 8;  // queries
};

// A software device pays for every element that its lanes load, and little for registers. So it
// takes many rows, and lanes enough for its limit on rounds.
OutputTile output_tile(const DeviceCaps& caps, const LinearAttentionAttrs& a, const LinearSizes& s,
                       uint64_t keys) {
  constexpr uint32_t kMostSums = 256;  // of an invocation
  OutputTile tile{.lanes = attention_local_size(caps, a.value_width)};
  if (caps.device_class != DeviceClass::kSoftware) return tile;
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  for (;; tile.lanes *= 2) {
    const uint32_t columns = round_up(a.value_width, tile.lanes);
    tile.rows = std::bit_floor(
        std::min(kMostSums / std::min(columns, 32u), kSharedWords / (64 + tile.lanes)));
    tile.rows = std::min({tile.rows, 32u, std::bit_ceil(a.queries)});
    const uint64_t loads = uint64_t{s.features} * (tile.lanes + tile.rows) / tile.lanes;
    const uint64_t rounds = (1 + keys / tile.lanes) * loads + 2 * keys;
    if (2 * rounds <= kMostSoftwareIterations || 2 * tile.lanes > limit) return tile;
  }
}

void emit_output(const Launch& l) {
  const LinearAttentionAttrs& a = l.a;
  const LinearSizes& s = l.sizes;
  const bool causal = l.causal();
  const LinearOutputParams params{.v = a.v,
                                  .y = a.y,
                                  .heads = a.heads,
                                  .first_unit = l.first_unit,
                                  .units = l.units,
                                  .queries = a.queries,
                                  .keys = a.keys,
                                  .chunk = s.chunk,
                                  .chunks = causal ? s.chunks : 1u,
                                  .state_offset = causal ? 0u : l.first_unit * s.state_words,
                                  .features = s.features,
                                  .k_offset = l.k_offset(),
                                  .epsilon = a.features.epsilon};
  Dispatch d = make_dispatch(l.node, KernelId::linear_attention_output__f32_f32_f32);
  d.bindings = {{l.node.inputs[0], Access::kRead},
                {l.features, Access::kRead},
                {causal ? l.states : l.total, Access::kRead},
                {l.node.outputs[0], Access::kWrite}};
  d.set_push(params);
  const uint64_t keys = causal ? s.chunk : 0;
  const OutputTile tile = output_tile(l.context.caps, a, s, keys);
  d.set_constants(
      LinearOutputConstants{.local_size = tile.lanes,
                            .rows = tile.rows,
                            .value_width = a.value_width,
                            .causal = causal,
                            .fades = l.fades(),
                            .has_one = l.has_one(),
                            .direct = l.context.caps.device_class == DeviceClass::kSoftware});
  set_row_groups(l.context, d, uint64_t{l.units} * round_up(a.queries, tile.rows), 1);
  const double ratio = static_cast<double>(a.value_width) / s.features;
  const double per_query = a.value_width + 1 + static_cast<double>(keys) / 2 * (1 + ratio);
  d.flops = 2.0 * l.pairs() * a.queries * per_query;
  d.bytes = 4.0 * l.pairs() * a.queries * (1.0 + per_query / tile.rows);
  l.context.plan.dispatches.push_back(std::move(d));
}

Status emit_weights(const Launch& l) {
  const LinearAttentionAttrs& a = l.a;
  if (a.maps == LinearAttentionAttrs::Maps::kNone) return {};
  if (too_many_passes(l.context.caps, a.keys, l.sizes.features)) {
    return unsupported(
        message({"[linear_attention] weights of ", a.keys, " keys with ", l.sizes.features,
                 " features are too much for a software device; use a shorter sequence"}));
  }
  const LinearWeightsParams params{.heads = a.heads,
                                   .first_unit = l.first_unit,
                                   .units = l.units,
                                   .first_head = a.first_head,
                                   .heads_out = a.head_count,
                                   .queries = a.queries,
                                   .keys = a.keys,
                                   .features = l.sizes.features,
                                   .k_offset = l.k_offset(),
                                   .state_words = l.sizes.state_words,
                                   .epsilon = a.features.epsilon};
  Dispatch d = make_dispatch(l.node, KernelId::linear_attention_weights__f32_f32_f32);
  d.bindings = {{l.features, Access::kRead},
                {l.total, Access::kRead},
                {l.node.outputs[2], Access::kReadWrite}};
  d.set_push(params);
  d.set_constants(
      LinearWeightsConstants{.local_size = row_local_size(l.context.caps, a.keys, l.sizes.features),
                             .causal = l.causal(),
                             .fades = l.fades(),
                             .has_one = l.has_one()});
  set_row_groups(l.context, d, uint64_t{l.units} * a.queries, 1);
  d.flops = 2.0 * l.pairs() * a.queries * a.keys;
  d.bytes = 2.0 * d.flops;
  l.context.plan.dispatches.push_back(std::move(d));
  return {};
}

Status lower_full(LowerContext& context, const Node& node, const LinearAttentionAttrs& a) {
  const bool favor = a.features.map == Map::kFavor;
  const LinearSizes sizes =
      linear_sizes(a, favor ? context.desc(node.inputs[1]).shape[0] : int64_t{0});
  if (leaves_loops(context.caps, 4 * uint64_t{sizes.chunks})) {
    return unsupported(
        message({"[linear_attention] ", a.keys,
                 " keys are more than a software device sums; use a shorter sequence"}));
  }
  const uint32_t all = a.batch * a.heads;
  const uint64_t each = linear_unit_words(sizes);
  const auto most = u32(std::clamp<uint64_t>(kMostLaunchWords / each, 1, all));
  Launch l{context, node, a, sizes};
  l.features = context.add_scratch("features", 4 * most * sizes.feature_words);
  l.states = context.add_scratch("states", 4 * most * sizes.states_words);
  l.total = l.prompt() ? node.outputs[1]
                       : context.add_scratch("state", uint64_t{4} * all * sizes.state_words);
  for (l.first_unit = 0; l.first_unit < all; l.first_unit += most) {
    l.units = std::min(most, all - l.first_unit);
    emit_features(l);
    emit_states(l);
    emit_output(l);
    VKF_CHECK(emit_weights(l));
  }
  return {};
}

}  // namespace

LinearSizes linear_sizes(const LinearAttentionAttrs& a, int64_t omega_rows) {
  LinearSizes s;
  s.map_features =
      a.features.map == Map::kElu ? a.head_width : u32(static_cast<uint64_t>(omega_rows));
  s.features = s.map_features + (linear_has_one(a.features) ? 1 : 0);
  s.state_words = linear_state_words(s.features, a.value_width);
  const bool causal = a.causal == LinearAttentionAttrs::Causal::kYes;
  s.chunk = !causal ? kSumChunk : a.value_width <= 128 ? kChunk : kWideChunk;
  s.chunks = round_up(causal ? std::max(a.queries, a.keys) : a.keys, s.chunk);
  s.feature_words =
      uint64_t{a.queries} * s.features + uint64_t{a.keys} * (uint64_t{s.features} + 1);
  s.states_words = uint64_t{s.chunks} * s.state_words;
  return s;
}

uint64_t linear_unit_words(const LinearSizes& sizes) {
  return std::max(sizes.feature_words, sizes.states_words);
}

uint32_t linear_map(const LinearFeatureAttrs& f) {
  return f.map == Map::kFavor ? VKF_MAP_FAVOR : VKF_MAP_ELU;
}

bool linear_fades(const LinearFeatureAttrs& f) {
  return f.map == Map::kFavor;
}

bool linear_has_one(const LinearFeatureAttrs& f) {
  return f.kernel_eps > 0;
}

uint32_t linear_feature_lanes(const DeviceCaps& caps, uint32_t features, uint32_t head_width) {
  return row_local_size(caps, features, uint64_t{head_width} + 32);
}

uint32_t linear_feature_spread(const LinearFeatureAttrs& f, uint32_t features, uint32_t lanes) {
  constexpr uint32_t kMost = 4;
  return f.map == Map::kFavor ? std::min(kMost, round_up(features, lanes)) : 1;
}

Status lower_linear_attention(LowerContext& context, const Node& node) {
  const auto& form = attrs_of<LinearAttentionNodeAttrs>(node);
  if (const auto* step = std::get_if<LinearStepAttrs>(&form)) {
    return lower_linear_attention_step(context, node, *step);
  }
  return lower_full(context, node, std::get<LinearAttentionAttrs>(form));
}

}  // namespace vkformer
