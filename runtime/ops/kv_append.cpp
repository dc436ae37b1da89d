#include "ops/kv_append.h"

#include "base/message.h"
#include "ops/cache_format.h"
#include "ops/row_kernel.h"
#include "params/attention.h"
#include "params/decode_state.h"

namespace vkformer {

namespace {

Status check_prompt(const TensorDesc& x, const TensorDesc& cache, const KvAppendAttrs& a) {
  const int64_t positions = a.positions == 0 ? cache.shape[1] : int64_t{a.positions};
  if (x.shape[0] * a.beams <= cache.shape[0] && x.shape[1] <= positions) return {};
  return op_error(OpId::k_kv_append,
                  message({"a prompt of ", shape_text(x.shape), " with ", a.beams,
                           " rows an item does not fit into the cache ", shape_text(cache.shape),
                           " of ", positions, " positions"}));
}

}  // namespace

Status check_kv_append(const TensorDesc& x, const TensorDesc& state, const TensorDesc& cache,
                       const KvAppendAttrs& a) {
  const int64_t least = std::max(int64_t{a.k_offset} + a.k_width, int64_t{a.v_offset} + a.v_width);
  if (x.dtype != DType::kF32 || x.shape.size() < 2 || x.shape.size() > 3 || x.shape[0] < 1 ||
      x.shape[1] < 1 || x.shape.back() < least) {
    return op_error(OpId::k_kv_append,
                    message({"x is ", dtype_name(x.dtype), " ", shape_text(x.shape),
                             ", but must be F32 (slots, at least ", least,
                             "), or (B, P, as much) for a prompt"}));
  }
  const int64_t line = int64_t{a.k_width} + a.v_width;
  if (!cache_format(cache, line)) {
    return op_error(OpId::k_kv_append,
                    message({"cache is ", dtype_name(cache.dtype), " ", shape_text(cache.shape),
                             ", but must be ", cache_wanted(line)}));
  }
  if (a.sinks >= cache.shape[1]) {
    return op_error(OpId::k_kv_append,
                    message({a.sinks, " sinks are to stay, but must be fewer than the ",
                             cache.shape[1], " lines of the cache"}));
  }
  if (state.dtype != DType::kU32 || state.shape.size() != 1 || state.shape[0] < VKF_STATE_WORDS) {
    return op_error(OpId::k_kv_append,
                    message({"state is ", dtype_name(state.dtype), " ", shape_text(state.shape),
                             ", but must be U32 (words)"}));
  }
  return x.shape.size() == 3 ? check_prompt(x, cache, a) : Status();
}

Status add_kv_append(Graph& graph, TensorId x, TensorId state, TensorId cache,
                     const KvAppendAttrs& attrs) {
  VKF_CHECK(check_kv_append(graph.tensor(x), graph.tensor(state), graph.tensor(cache), attrs));
  if (graph.is_step() == (graph.tensor(x).shape.size() == 3)) {
    return op_error(OpId::k_kv_append,
                    graph.is_step()
                        ? "x is a prompt, but the graph is a decoding step"
                        : "x is a row for every slot, but the graph is not a decoding step");
  }
  Node node = make_node<OpId::k_kv_append>(
      attrs, "k=" + std::to_string(attrs.k_offset) + "+" + std::to_string(attrs.k_width) +
                 " v=" + std::to_string(attrs.v_offset) + "+" + std::to_string(attrs.v_width));
  node.inputs = {x, state};
  node.outputs = {cache};
  graph.add_node(std::move(node));
  return {};
}

Dispatch packing_dispatch(LowerContext& context, const Node& node, CacheFormat format,
                          uint32_t width) {
  Dispatch d = make_dispatch(node, KernelId::kv_append_slot__f32_none_packed);
  // An invocation packs a run of 32.
  const uint32_t runs = (width + kBlockSteps - 1) / kBlockSteps;
  d.set_constants(KvAppendConstants{.local_size = row_local_size(context.caps, runs),
                                    .cache_format = static_cast<uint32_t>(format)});
  return d;
}

Status lower_kv_append(LowerContext& context, const Node& node) {
  const KvAppendAttrs& a = attrs_of<KvAppendAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const TensorDesc& cache = context.desc(node.outputs[0]);
  const bool prompt = !context.graph.is_step();
  const auto lines = static_cast<uint32_t>(cache.shape[1]);
  const uint64_t rows = row_count(x.shape);
  const KvAppendParams params{.k_offset = a.k_offset,
                              .v_offset = a.v_offset,
                              .row_stride = static_cast<uint32_t>(x.shape.back()),
                              .k_width = a.k_width,
                              .v_width = a.v_width,
                              .lines = lines,
                              .rows = static_cast<uint32_t>(rows),
                              .tokens = prompt ? static_cast<uint32_t>(x.shape[1]) : 1u,
                              .beams = a.beams,
                              .positions = a.positions == 0 ? lines : a.positions,
                              .sinks = a.sinks};
  Dispatch d = prompt ? make_dispatch(node, KernelId::kv_append_prompt__f32_none_f32)
                      : make_dispatch(node, KernelId::kv_append_slot__f32_none_f32);
  const uint32_t width = a.k_width + a.v_width;
  d.set_constants(KvAppendConstants{.local_size = row_local_size(context.caps, width)});
  const CacheFormat format = cache_format(cache, width).value();
  if (format != CacheFormat::kF32) {
    d = packing_dispatch(context, node, format, width);
    if (prompt) d.kernel = KernelId::kv_append_prompt__f32_none_packed;
  }
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite},
                {node.inputs[1], Access::kRead}};
  d.set_push(params);
  set_row_groups(context, d, rows, 1);
  const double cached = 4.0 * static_cast<double>(cache.shape[2]);
  d.bytes = static_cast<double>(rows) * (4.0 * width + cached);
  d.flops = static_cast<double>(rows) * width;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
