#include "ops/rotary_append.h"

#include "base/message.h"
#include "ops/cache_format.h"
#include "ops/kv_append.h"
#include "ops/row_op.h"
#include "params/attention.h"
#include "params/decode_state.h"
#include "params/rotary.h"

namespace vkformer {
namespace {

KvAppendAttrs append_attrs(const RotaryAppendAttrs& a) {
  const uint32_t k = a.heads * a.head_width;
  const uint32_t width = a.kv_heads * a.head_width;
  return {.k_offset = k,
          .v_offset = k + width,
          .k_width = width,
          .v_width = a.kv_heads * a.values(),
          .positions = a.positions,
          .sinks = a.sinks};
}

}  // namespace

Result<TensorDesc> check_rotary_append(const TensorDesc& x, const TensorDesc& table,
                                       const TensorDesc& state, const TensorDesc& cache,
                                       const RotaryAppendAttrs& a) {
  const uint64_t width =
      (uint64_t{a.heads} + a.kv_heads) * a.head_width + uint64_t{a.kv_heads} * a.values();
  if (a.kv_heads == 0 || x.shape.size() != 2 || static_cast<uint64_t>(x.shape[1]) < width) {
    return op_error(OpId::k_rotary_append,
                    message({"x has shape ", shape_text(x.shape), ", but must be (slots, at least ",
                             width, "): ", a.heads, " query heads and ", a.kv_heads,
                             " of keys and of values, each at least one and of width ",
                             a.head_width, ", of values ", a.values()}));
  }
  if (a.again_heads != 0 && a.again_heads != a.heads) {
    return op_error(
        OpId::k_rotary_append,
        message({a.again_heads, " query heads are to follow once more, but it must be all ",
                 a.heads, " or none"}));
  }
  if (a.rotary_width == 0) {
    return op_error(
        OpId::k_rotary_append,
        message({"The rotary width is 0, but must be even, above 0 and at most the head width ",
                 a.head_width}));
  }
  const RotaryAttrs turned{.heads = a.heads + a.kv_heads,
                           .head_width = a.head_width,
                           .rotary_width = a.rotary_width,
                           .pairs = a.pairs};
  VKF_CHECK(check_rotary(x, table, turned));
  if (x.shape[0] > VKF_MAX_SLOTS) {
    return op_error(OpId::k_rotary_append, message({"x has shape ", shape_text(x.shape),
                                                    ", but a decoding step has at most ",
                                                    VKF_MAX_SLOTS, " slots, one a row"}));
  }
  VKF_CHECK(check_kv_append(x, state, cache, append_attrs(a)));
  const int64_t queries = (int64_t{a.heads} + a.again_heads) * a.head_width;
  return TensorDesc{"rotary_append", DType::kF32, {x.shape[0], queries}};
}

Result<TensorId> add_rotary_append(Graph& graph, const RotaryAppendInputs& in,
                                   const RotaryAppendAttrs& a) {
  if (!graph.is_step()) {
    return op_error(OpId::k_rotary_append,
                    "the graph is not a decoding step; use rotary and kv_append");
  }
  VKF_ASSIGN(TensorDesc out,
             check_rotary_append(graph.tensor(in.x), graph.tensor(in.table), graph.tensor(in.state),
                                 graph.tensor(in.cache), a));
  const TensorId y = graph.add_tensor(std::move(out));
  Node node = make_node<OpId::k_rotary_append>(
      a, "H=" + std::to_string(a.heads) + " Hkv=" + std::to_string(a.kv_heads) +
             " E=" + std::to_string(a.head_width) + " turned=" + std::to_string(a.rotary_width) +
             (a.pairs == RotaryPairs::kInterleaved ? " interleaved" : " halves"));
  node.inputs = {in.x, in.table, in.state};
  node.outputs = {y, in.cache};
  graph.add_node(std::move(node));
  return y;
}

namespace {

// Turned keys and values of a line for every row of the cache go on into a packed cache.
void pack_lines(LowerContext& context, const Node& node, const RotaryAppendAttrs& a,
                uint32_t turned) {
  const TensorDesc& cache = context.desc(node.outputs[1]);
  const uint32_t keys = a.kv_heads * a.head_width, values = a.kv_heads * a.values();
  const auto lines = static_cast<uint32_t>(cache.shape[1]);
  const uint64_t slots = row_count(context.desc(node.inputs[0]).shape);
  const KvAppendParams params{.k_offset = 0,
                              .v_offset = keys,
                              .row_stride = keys + values,
                              .k_width = keys,
                              .v_width = values,
                              .lines = lines,
                              .rows = static_cast<uint32_t>(slots),
                              .tokens = 1,
                              .beams = 1,
                              .positions = a.positions == 0 ? lines : a.positions,
                              .sinks = a.sinks};
  const CacheFormat format = cache_format(cache, keys + values).value();
  Dispatch d = packing_dispatch(context, node, format, keys + values);
  auto packing = d.constants_as<KvAppendConstants>();
  packing.from_row = 1;
  d.set_constants(packing);
  d.bindings = {
      {turned, Access::kRead}, {node.outputs[1], Access::kWrite}, {node.inputs[2], Access::kRead}};
  d.set_push(params);
  set_row_groups(context, d, slots, 1);
  const double line = keys + values;
  d.flops = static_cast<double>(slots) * line;
  d.bytes = static_cast<double>(slots) * (4.0 * line + 4.0 * static_cast<double>(cache.shape[2]));
  context.plan.dispatches.push_back(std::move(d));
}

}  // namespace

Status lower_rotary_append(LowerContext& context, const Node& node) {
  const RotaryAppendAttrs& a = attrs_of<RotaryAppendAttrs>(node);
  const uint64_t slots = row_count(context.desc(node.inputs[0]).shape);
  const TensorDesc& cache = context.desc(node.outputs[1]);
  const uint32_t line = a.kv_heads * (a.head_width + a.values());
  // A packed cache gets its lines from one f32 line a row.
  const bool packed = cache_format(cache, line) != CacheFormat::kF32;
  uint32_t turned = node.outputs[1];
  if (packed) {
    turned = context.add_scratch("rotary_append.lines",
                                 4ull * static_cast<uint64_t>(cache.shape[0]) * line);
  }
  const auto lines = packed ? 1u : static_cast<uint32_t>(cache.shape[1]);
  const auto positions = a.positions == 0 ? static_cast<uint32_t>(cache.shape[1]) : a.positions;
  const RotaryAppendParams params{
      .heads = a.heads,
      .kv_heads = a.kv_heads,
      .head_width = a.head_width,
      .pairs = a.rotary_width / 2,
      .table_rows = static_cast<uint32_t>(context.desc(node.inputs[1]).shape[0]),
      .again_heads = a.again_heads,
      .again_limit = a.again_limit,
      .lines = lines,
      .positions = positions,
      .sinks = packed ? 0u : a.sinks,
      .value_width = a.values(),
      .row_stride = static_cast<uint32_t>(context.desc(node.inputs[0]).shape[1])};
  Dispatch d = make_dispatch(node, KernelId::rotary_append__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite},
                {turned, Access::kWrite},
                {node.inputs[2], Access::kRead}};
  d.set_push(params);
  // An invocation takes a pair of a head, or a few where heads are wide.
  const uint32_t local = row_local_size(context.caps, 2 * a.rotary_width);
  const uint32_t per_group = std::max(1u, run_length(context.caps, local) / a.head_width);
  d.set_constants(RotaryAppendConstants{.local_size = local,
                                        .heads_per_group = per_group,
                                        .interleaved = a.pairs == RotaryPairs::kInterleaved});
  set_row_groups(context, d, slots, 1);
  const uint32_t heads = a.heads + 2 * a.kv_heads + a.again_heads;
  d.groups[2] = (heads + per_group - 1) / per_group;
  const double elements = static_cast<double>(slots) * heads * a.head_width;
  d.flops = 3.0 * elements;
  d.bytes = 12.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  if (packed) pack_lines(context, node, a, turned);
  return {};
}

}  // namespace vkformer
