#include "ops/attention_step.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/message.h"
#include "ops/cache_format.h"
#include "ops/row_kernel.h"
#include "params/attention_merge.h"
#include "software/strategies.h"

namespace vkformer {
namespace {

Status check_aux(const TensorDesc& kv, const TensorDesc* aux, const AttentionStepAttrs& a) {
  const bool self = a.source == AttentionStepAttrs::Source::kSelf;
  const bool added = a.slopes_offset != VKF_NO_TERM || a.distance_offset != VKF_NO_TERM ||
                     a.sink_scores_offset != VKF_NO_TERM;
  if (added && (!self || aux == nullptr)) {
    return op_error(OpId::k_attention,
                    "ALiBi slopes, a bias by distance or sink scores are set, but only "
                    "self-attention with an aux tensor that holds them has them");
  }
  if (aux == nullptr) {
    if (!self || a.beams == 1) return {};
    return op_error(
        OpId::k_attention,
        message({"with ", a.beams, " beams a step needs the ancestry (R, C); none was given"}));
  }
  const int64_t keys = self && a.positions > 0 ? int64_t{a.positions} : kv.shape[1];
  if (!self) {
    const Shape wanted = {kv.shape[0], (keys + 31) / 32};
    if (aux->dtype == DType::kU32 && aux->shape == wanted) return {};
    return op_error(OpId::k_attention,
                    message({"the key mask is ", dtype_name(aux->dtype), " ",
                             shape_text(aux->shape), ", but must be U32 ", shape_text(wanted)}));
  }
  int64_t needed = kv.shape[0] * keys;
  for (uint32_t offset : {a.slopes_offset, a.distance_offset, a.sink_scores_offset}) {
    if (offset != VKF_NO_TERM) needed = std::max(needed, int64_t{offset} + a.heads);
  }
  if (aux->dtype == DType::kU32 && element_count(aux->shape) >= needed) return {};
  return op_error(OpId::k_attention,
                  message({"the ancestry is ", dtype_name(aux->dtype), " ", shape_text(aux->shape),
                           ", but must be U32 with at least ", needed, " words"}));
}

// Values within keys: those of the one key head.
Status check_value_column(const AttentionStepAttrs& a) {
  if (!a.value_column) return {};
  const uint64_t end = uint64_t{*a.value_column} + a.value_width;
  if (a.kv_heads == 1 && end <= a.head_width) return {};
  return op_error(OpId::k_attention,
                  message({"values are columns [", *a.value_column, ", ", end,
                           ") of a key, but must be of one key head of ", a.head_width,
                           " columns; there are ", a.kv_heads, " heads"}));
}

// Does the cache hold every key that a query sees?
Status check_rolling(const TensorDesc& kv, const AttentionStepAttrs& a) {
  const int64_t lines = kv.shape[1];
  const int64_t positions = a.positions > 0 ? int64_t{a.positions} : lines;
  const bool self = a.source == AttentionStepAttrs::Source::kSelf;
  if (!self && (a.context > 0 || a.sinks > 0 || a.positions > 0)) {
    return op_error(OpId::k_attention,
                    "a context, sinks or positions are set, but cross-attention sees all keys");
  }
  if (a.sinks > 0 && a.sinks >= a.context) {
    return op_error(OpId::k_attention,
                    message({a.sinks, " sinks are to stay, but must be fewer than the ", a.context,
                             " keys of the context"}));
  }
  int64_t needed = positions;
  if (a.context > 0) needed = std::min(needed, int64_t{a.context});
  // A window that never reaches a sink once keys are omitted needs no more than itself.
  if (a.window > 0 && (a.context == 0 || a.window <= a.context - a.sinks)) {
    needed = std::min(needed, int64_t{a.window});
  }
  if (!self || lines >= needed) return {};
  return op_error(OpId::k_attention,
                  message({"the cache has ", lines, " lines, but a query sees ", needed, " keys"}));
}

// Keys that a query sees at most, however many lines hold them: the order of summation goes by it.
uint32_t most_keys(const AttentionDecodeParams& p) {
  uint32_t keys = p.positions;
  if (p.context > 0) keys = std::min(keys, p.context);
  if (p.window > 0) keys = std::min(keys, p.window);
  return keys;
}

constexpr uint32_t kMostFolded = 4;   // query heads of a workgroup
constexpr uint32_t kMostLanes = 128;  // invocations of a workgroup

// Shared memory of attention_decode: queries, weights and lines of a tile, and what reduces them.
uint64_t shared_bytes(const AttentionStepAttrs& a, uint64_t heads) {
  const uint64_t queries = a.sink_q_offset ? 2 : 1;
  return 4 * (heads * (queries * a.head_width + kMostLanes) + 2 * uint64_t{kMostLanes});
}

// Query heads that one workgroup takes, so that it reads their keys and values once: as many as its
// shared memory has room for.
uint32_t folded_heads(const DeviceCaps& caps, const AttentionStepAttrs& a) {
  const uint32_t shared = a.heads / a.kv_heads;
  uint32_t heads = std::min(kMostFolded, shared);
  while (heads > 1 &&
         (shared % heads != 0 || shared_bytes(a, heads) > caps.limits.max_shared_bytes)) {
    --heads;
  }
  return heads;
}

// Rounds of the loops of one of `lanes` invocations: a tile's product, then its values.
uint64_t rounds_of(const AttentionStepAttrs& a, uint64_t heads, uint64_t keys, uint32_t lanes) {
  const uint64_t columns = (a.value_width + lanes - 1) / lanes;
  return (keys / lanes + 1) * (1 + a.head_width * heads + lanes * (2 + columns * heads));
}

// As many invocations as the width asks for, more where loops would be cut short.
Result<uint32_t> step_local_size(const DeviceCaps& caps, const AttentionStepAttrs& a,
                                 uint32_t keys) {
  const uint32_t most =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], kMostLanes});
  const uint32_t heads = folded_heads(caps, a);
  uint32_t lanes = attention_local_size(caps, a.value_width);
  while (leaves_loops(caps, rounds_of(a, heads, keys, lanes)) && 2 * lanes <= most) lanes *= 2;
  if (!leaves_loops(caps, rounds_of(a, heads, keys, lanes))) return lanes;
  return unsupported(message(
      {"[attention] There is no kernel for a step over ", keys, " keys of width ", a.head_width,
       " on a software device; use a context of fewer keys, or generate less"}));
}

// How the attended keys are split: by their number in the row alone, so that a row gives the same
// result whatever the capacity. Only where the capacity is so large that results of parts would
// take much memory does it decide, too.
struct KeyParts {
  uint32_t keys = 0;  // of a part; 0: there is one part
  uint32_t count = 1;
};

// Of a part, at least. A software device has few threads, which the heads of most models keep busy;
// the heads of few models keep a GPU busy.
uint32_t least_part_keys(const DeviceCaps& caps, const AttentionStepAttrs& a) {
  if (caps.device_class != DeviceClass::kSoftware) return 128;
  return a.heads / folded_heads(caps, a) >= 4 ? 2048 : 256;
}

KeyParts split_keys(const DeviceCaps& caps, const AttentionStepAttrs& a, uint32_t most) {
  constexpr uint32_t kMostParts = 64;
  const uint32_t keys =
      std::max(least_part_keys(caps, a), std::bit_ceil((most + kMostParts - 1) / kMostParts));
  if (most <= keys) return {};
  return {keys, (most + keys - 1) / keys};
}

void merge_parts(LowerContext& context, const Node& node, const AttentionStepAttrs& a,
                 uint32_t parts, uint32_t count) {
  const auto slots = static_cast<uint32_t>(context.desc(node.inputs[0]).shape[0]);
  Dispatch d = make_dispatch(node, KernelId::attention_merge__f32_none_f32);
  d.bindings = {
      {parts, Access::kRead}, {node.outputs[0], Access::kWrite}, {node.inputs[3], Access::kRead}};
  d.set_push(AttentionMergeParams{.heads = a.heads, .y_stride = a.heads * a.value_width});
  d.set_constants(AttentionMergeConstants{.local_size = row_local_size(context.caps, a.value_width),
                                          .value_width = a.value_width,
                                          .parts = count});
  d.groups = {slots, a.heads, 1};
  d.live_axis = 0;
  d.slots_per_group = 1;
  const double sums = static_cast<double>(slots) * a.heads * (a.value_width + 2.0);
  d.flops = 2.0 * sums * count;
  d.bytes = 4.0 * sums * (count + 1.0);
  context.plan.dispatches.push_back(std::move(d));
}

// The kernel and its constants for a step over up to `most` keys.
Status choose_kernel(const DeviceCaps& caps, const AttentionStepAttrs& a,
                     const AttentionStepLaunch& launch, uint32_t most, Dispatch& d) {
  if (software_attention_step(caps, a, launch, d)) return {};
  if (launch.format == CacheFormat::kF32) {
    d.kernel = caps.subgroup() ? KernelId::attention_decode__f32_f32_f32_subgroup
                               : KernelId::attention_decode__f32_f32_f32;
  } else {
    d.kernel = caps.subgroup() ? KernelId::attention_decode__f32_packed_f32_subgroup
                               : KernelId::attention_decode__f32_packed_f32;
  }
  VKF_ASSIGN(const uint32_t lanes,
             step_local_size(caps, a, launch.part_keys > 0 ? launch.part_keys : most));
  d.set_constants(
      AttentionDecodeConstants{.local_size = lanes,
                               .width = a.head_width,
                               .value_width = a.value_width,
                               .cross = a.source == AttentionStepAttrs::Source::kCross ? 1u : 0u,
                               .queries = a.sink_q_offset ? 2u : 1u,
                               .rolls = launch.rolls,
                               .softcap = softcap_bits(a.softcap),
                               .heads = launch.heads,
                               .part_keys = launch.part_keys,
                               .parts = launch.parts,
                               .quads = (a.head_width | a.value_width) % 4 == 0,
                               .cache_format = static_cast<uint32_t>(launch.format)});
  return {};
}

}  // namespace

uint32_t attention_local_size(const DeviceCaps& caps, uint32_t value_width) {
  if (caps.device_class == DeviceClass::kSoftware) return row_local_size(caps, value_width);
  const uint32_t limit =
      std::min({caps.limits.max_invocations, caps.limits.max_group_size[0], 128u});
  const uint32_t least = std::clamp(std::bit_ceil(std::max(1u, caps.subgroup_size)), 64u, limit);
  return std::min(value_width > 128 ? std::max(least, 128u) : least, limit);
}

Result<TensorDesc> check_attention_step(const TensorDesc& q, const TensorDesc& kv,
                                        const TensorDesc* aux, const TensorDesc& state,
                                        const AttentionStepAttrs& a) {
  const AttentionAttrs numbers{.heads = a.heads,
                               .kv_heads = a.kv_heads,
                               .head_width = a.head_width,
                               .value_width = a.value_width,
                               .scale = a.scale,
                               .softcap = a.softcap};
  VKF_CHECK(check_attention_numbers(OpId::k_attention, numbers, kMaxStepHeadWidth));
  VKF_CHECK(check_value_column(a));
  const int64_t q_end =
      int64_t{std::max(a.q_offset, a.sink_q_offset.value_or(0))} + int64_t{a.heads} * a.head_width;
  if (q.dtype != DType::kF32 || q.shape.size() != 2 || q.shape[1] < q_end || q.shape[0] < 1) {
    return op_error(OpId::k_attention,
                    message({"q is ", dtype_name(q.dtype), " ", shape_text(q.shape),
                             ", but must be F32 (slots, at least ", q_end, ")"}));
  }
  const int64_t line = a.line_width();
  if (!cache_format(kv, line)) {
    return op_error(OpId::k_attention,
                    message({"kv is ", dtype_name(kv.dtype), " ", shape_text(kv.shape),
                             ", but must be ", cache_wanted(line)}));
  }
  if (a.beams < 1) return op_error(OpId::k_attention, "beams is 0, but must be at least 1");
  VKF_CHECK(check_rolling(kv, a));
  VKF_CHECK(check_aux(kv, aux, a));
  if (state.dtype != DType::kU32 || state.shape.size() != 1 || state.shape[0] < VKF_STATE_WORDS) {
    return op_error(OpId::k_attention,
                    message({"state is ", dtype_name(state.dtype), " ", shape_text(state.shape),
                             ", but must be U32 (words)"}));
  }
  return TensorDesc{"attention", DType::kF32, {q.shape[0], int64_t{a.heads} * a.value_width}};
}

Result<TensorId> add_attention_step(Graph& graph, const AttentionStepInputs& inputs,
                                    const AttentionStepAttrs& attrs) {
  if (!graph.is_step()) {
    return op_error(OpId::k_attention,
                    "add_attention_step was called on a graph that is not a decoding step; use "
                    "add_attention");
  }
  const TensorDesc* aux = inputs.aux == kNoTensor ? nullptr : &graph.tensor(inputs.aux);
  VKF_ASSIGN(TensorDesc out, check_attention_step(graph.tensor(inputs.q), graph.tensor(inputs.kv),
                                                  aux, graph.tensor(inputs.state), attrs));
  const TensorId y = graph.add_tensor(std::move(out));
  const bool self = attrs.source == AttentionStepAttrs::Source::kSelf;
  Node node = make_node<OpId::k_attention>(
      AttentionNodeAttrs{attrs},
      std::string(self ? "self" : "cross") + " step H=" + std::to_string(attrs.heads) +
          " Hkv=" + std::to_string(attrs.kv_heads) + " E=" + std::to_string(attrs.head_width));
  node.inputs = {inputs.q, inputs.kv, inputs.aux, inputs.state};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

Status lower_attention_step(LowerContext& context, const Node& node, const AttentionStepAttrs& a) {
  const TensorDesc& q = context.desc(node.inputs[0]);
  const TensorDesc& kv = context.desc(node.inputs[1]);
  const bool has_aux = node.inputs[2] != kNoTensor;
  const double fallback = 1.0 / std::sqrt(static_cast<double>(a.head_width));
  const auto lines = static_cast<uint32_t>(kv.shape[1]);
  const AttentionDecodeParams params{.heads = a.heads,
                                     .heads_per_kv = a.heads / a.kv_heads,
                                     .q_offset = a.q_offset,
                                     .q_stride = static_cast<uint32_t>(q.shape[1]),
                                     .y_stride = a.heads * a.value_width,
                                     .line = static_cast<uint32_t>(kv.shape[2]),
                                     .value_offset = a.value_offset(),
                                     .lines = lines,
                                     .beams = a.beams,
                                     .has_aux = has_aux ? 1u : 0u,
                                     .scale = a.scale.value_or(static_cast<float>(fallback)),
                                     .window = a.window,
                                     .slopes_offset = a.slopes_offset,
                                     .distance_offset = a.distance_offset,
                                     .positions = a.positions == 0 ? lines : a.positions,
                                     .context = a.context,
                                     .sinks = a.sinks,
                                     .sink_q_offset = a.sink_q_offset.value_or(a.q_offset),
                                     .sink_scores_offset = a.sink_scores_offset};
  const uint32_t most = most_keys(params);
  const KeyParts parts = split_keys(context.caps, a, most);
  Dispatch d = make_dispatch(node, KernelId::attention_decode__f32_f32_f32);
  const AttentionStepLaunch launch{.rolls = params.lines < params.positions,
                                   .heads = folded_heads(context.caps, a),
                                   .part_keys = parts.keys,
                                   .parts = parts.count,
                                   .format = cache_format(kv, a.line_width()).value()};
  VKF_CHECK(choose_kernel(context.caps, a, launch, most, d));
  uint32_t result = node.outputs[0];
  const auto slots = static_cast<uint32_t>(q.shape[0]);
  if (parts.keys > 0) {
    const uint64_t part_bytes = 4ull * slots * a.heads * (uint64_t{a.value_width} + 2);
    result = context.add_scratch("attention.parts", part_bytes * parts.count);
  }
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {has_aux ? node.inputs[2] : node.inputs[1], Access::kRead},
                {result, Access::kWrite},
                {node.inputs[3], Access::kRead}};
  d.set_push(params);
  d.groups = {slots, a.heads / launch.heads, parts.count};
  d.live_axis = 0;
  d.slots_per_group = 1;
  const double pairs = static_cast<double>(q.shape[0]) * a.heads * params.lines;
  d.flops = 2.0 * pairs * (a.head_width + a.value_width);
  d.bytes = 4.0 * pairs / a.kv_heads * static_cast<double>(kv.shape[2]);
  context.plan.dispatches.push_back(std::move(d));
  if (parts.keys > 0) merge_parts(context, node, a, result, parts.count);
  return {};
}

}  // namespace vkformer
