#include "ops/kv_append.h"

#include "ops/row_kernel.h"
#include "params/attention.h"
#include "params/decode_state.h"

namespace vkformer {

namespace {

constexpr OpId kOp = OpId::k_kv_append;

Status check_prompt(const TensorDesc& x, const TensorDesc& cache, const KvAppendAttrs& a) {
  if (x.shape[0] * a.beams <= cache.shape[0] && x.shape[1] <= cache.shape[1]) return {};
  return op_error(kOp, "a prompt of " + shape_text(x.shape) + " with " + std::to_string(a.beams) +
                           " rows an item does not fit into the cache " + shape_text(cache.shape));
}

}  // namespace

Status check_kv_append(const TensorDesc& x, const TensorDesc* state, const TensorDesc& cache,
                       const KvAppendAttrs& a) {
  const size_t axes = state == nullptr ? 3 : 2;
  const int64_t least = std::max(int64_t{a.k_offset} + a.k_width, int64_t{a.v_offset} + a.v_width);
  if (x.dtype != DType::kF32 || x.shape.size() != axes || x.shape[0] < 1 || x.shape[1] < 1 ||
      x.shape.back() < least) {
    return op_error(kOp, "x is " + std::string(dtype_name(x.dtype)) + " " + shape_text(x.shape) +
                             ", but must be F32 (slots, at least " + std::to_string(least) +
                             "), or (B, P, as much) for a prompt");
  }
  const int64_t line = int64_t{a.k_width} + a.v_width;
  if (cache.dtype != DType::kF32 || cache.shape.size() != 3 || cache.shape[0] < 1 ||
      cache.shape[1] < 1 || cache.shape[2] != line) {
    return op_error(kOp, "cache is " + std::string(dtype_name(cache.dtype)) + " " +
                             shape_text(cache.shape) + ", but must be F32 (rows, keys, " +
                             std::to_string(line) + ")");
  }
  if (state == nullptr) return check_prompt(x, cache, a);
  if (state->dtype != DType::kU32 || state->shape.size() != 1 ||
      state->shape[0] < VKF_STATE_WORDS) {
    return op_error(kOp, "state is " + std::string(dtype_name(state->dtype)) + " " +
                             shape_text(state->shape) + ", but must be U32 (words)");
  }
  return {};
}

Status add_kv_append(Graph& graph, TensorId x, TensorId state, TensorId cache,
                     const KvAppendAttrs& attrs) {
  const bool prompt = state == kNoTensor;
  if (graph.is_step() == prompt) {
    return op_error(kOp, prompt ? "a decoding step needs its state; none was given"
                                : "a state was given, but the graph is no decoding step");
  }
  VKF_CHECK(check_kv_append(graph.tensor(x), prompt ? nullptr : &graph.tensor(state),
                            graph.tensor(cache), attrs));
  Node node =
      make_node(kOp, attrs,
                "k=" + std::to_string(attrs.k_offset) + "+" + std::to_string(attrs.k_width) +
                    " v=" + std::to_string(attrs.v_offset) + "+" + std::to_string(attrs.v_width));
  node.inputs = {x, state};
  node.outputs = {cache};
  graph.add_node(std::move(node));
  return {};
}

Status lower_kv_append(LowerContext& context, const Node& node) {
  const KvAppendAttrs& a = attrs_of<KvAppendAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const TensorDesc& cache = context.desc(node.outputs[0]);
  const bool prompt = node.inputs[1] == kNoTensor;
  const uint64_t rows = row_count(x.shape);
  const KvAppendParams params{.k_offset = a.k_offset,
                              .v_offset = a.v_offset,
                              .row_stride = static_cast<uint32_t>(x.shape.back()),
                              .k_width = a.k_width,
                              .v_width = a.v_width,
                              .lines = static_cast<uint32_t>(cache.shape[1]),
                              .rows = static_cast<uint32_t>(rows),
                              .tokens = prompt ? static_cast<uint32_t>(x.shape[1]) : 1u,
                              .beams = a.beams};
  Dispatch d = make_dispatch(node, prompt ? KernelId::kv_append_prompt__f32_none_f32
                                          : KernelId::kv_append_slot__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead}, {node.outputs[0], Access::kWrite}};
  if (!prompt) d.bindings.push_back({node.inputs[1], Access::kRead});
  d.set_push(params);
  d.spec = {row_local_size(context.caps, a.k_width + a.v_width)};
  set_row_groups(context, d, rows, 1);
  d.bytes = 8.0 * static_cast<double>(rows) * (a.k_width + a.v_width);
  d.flops = d.bytes / 8;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
