#include "ops/chunk_attention.h"

#include <bit>
#include <cmath>

#include "base/message.h"
#include "ops/attention.h"
#include "ops/attention_blocks.h"
#include "ops/row_op.h"
#include "params/lsh.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostChunkQueries = 64;  // of a workgroup

Status check_sizes(const ChunkAttentionAttrs& a) {
  const uint32_t sizes[] = {a.batch,       a.heads,  a.tokens, a.head_width,
                            a.value_width, a.rounds, a.chunk};
  const char* names[] = {"batch",       "heads",  "tokens", "head_width",
                         "value_width", "rounds", "chunk"};
  for (size_t i = 0; i < 7; ++i) {
    if (sizes[i] >= 1 && sizes[i] < (1u << 24)) continue;
    return op_error(OpId::k_chunk_attention,
                    message({names[i], " is ", sizes[i], ", but must be from 1 to 16777215."}));
  }
  if (std::max(a.head_width, a.value_width) > kMaxHeadWidth) {
    return op_error(OpId::k_chunk_attention,
                    message({"head width ", a.head_width, " or value width ", a.value_width,
                             " is above the limit of ", kMaxHeadWidth, "."}));
  }
  if (a.tokens % a.chunk != 0) {
    return op_error(OpId::k_chunk_attention,
                    message({a.tokens, " tokens do not divide into chunks of ", a.chunk,
                             "; pad the sequence."}));
  }
  constexpr uint32_t kMostNeighbors = 4096;
  if (std::max(a.before, a.after) > kMostNeighbors) {
    return op_error(OpId::k_chunk_attention,
                    message({a.before, " chunks before and ", a.after,
                             " after are above the limit of ", kMostNeighbors, "."}));
  }
  return {};
}

Shape output_shape(const ChunkAttentionAttrs& a) {
  if (a.rounds == 1) return {a.batch, a.tokens, int64_t{a.heads} * a.value_width};
  return {a.batch, a.heads, a.rounds, a.tokens, int64_t{a.value_width} + 2};
}

HeadLayout output_layout(const ChunkAttentionAttrs& a) {
  if (a.rounds == 1) return merged_rows(a.tokens, a.heads * a.value_width, 0, a.value_width);
  return separate_heads(a.heads, a.rounds * a.tokens, a.value_width + 2, 0);
}

}  // namespace

Result<TensorDesc> check_chunk_attention(const TensorDesc& x, const TensorDesc* order,
                                         const ChunkAttentionAttrs& a) {
  VKF_CHECK(check_sizes(a));
  const std::array qk{a.batch, a.heads, a.tokens, a.head_width};
  VKF_CHECK(check_layout(OpId::k_chunk_attention, x, "q", a.q, qk));
  VKF_CHECK(check_layout(OpId::k_chunk_attention, x, "k", a.k, qk));
  VKF_CHECK(check_layout(OpId::k_chunk_attention, x, "v", a.v,
                         std::array{a.batch, a.heads, a.tokens, a.value_width}));
  const Shape wanted{a.batch, a.heads, a.rounds, a.tokens};
  if (order != nullptr && (order->dtype != DType::kU32 || order->shape != wanted)) {
    return op_error(OpId::k_chunk_attention,
                    message({"order is ", dtype_name(order->dtype), " ", shape_text(order->shape),
                             ", but must be U32 ", shape_text(wanted), "."}));
  }
  TensorDesc y{"chunk_attention", DType::kF32, output_shape(a)};
  double elements = 1;
  for (int64_t size : y.shape) elements *= static_cast<double>(size);
  if (elements < 4294967296.0) return y;
  return op_error(OpId::k_chunk_attention,
                  message({"y would have shape ", shape_text(y.shape),
                           ", above the limit of 2^32 - 1 elements; use a smaller batch."}));
}

Result<TensorId> add_chunk_attention(Graph& graph, const ChunkAttentionInputs& inputs,
                                     const ChunkAttentionAttrs& attrs) {
  const TensorDesc* order = inputs.order == kNoTensor ? nullptr : &graph.tensor(inputs.order);
  VKF_ASSIGN(TensorDesc out, check_chunk_attention(graph.tensor(inputs.x), order, attrs));
  if (inputs.mask != kNoTensor) {
    const TensorDesc& mask = graph.tensor(inputs.mask);
    const int64_t words = int64_t{attrs.batch} * ((int64_t{attrs.tokens} + 31) / 32);
    if (mask.dtype != DType::kU32 || element_count(mask.shape) < words) {
      return op_error(
          OpId::k_chunk_attention,
          message({"mask is ", dtype_name(mask.dtype), " ", shape_text(mask.shape),
                   ", but must be U32 of at least ", words, " words, one bit per token."}));
    }
  }
  std::string text = "chunk=" + std::to_string(attrs.chunk) + " -" + std::to_string(attrs.before) +
                     " +" + std::to_string(attrs.after) + " rounds=" + std::to_string(attrs.rounds);
  if (attrs.keys == ChunkAttentionAttrs::Keys::kQueries) text += " shared";
  if (attrs.causal == ChunkAttentionAttrs::Causal::kYes) text += " causal";
  Node node = make_node<OpId::k_chunk_attention>(attrs, std::move(text));
  node.inputs = {inputs.x, inputs.order, inputs.mask};
  return add_single_output(graph, std::move(node), std::move(out));
}

namespace {

ChunkAttentionParams kernel_params(const ChunkAttentionAttrs& a) {
  return {.q = a.q,
          .k = a.k,
          .v = a.v,
          .y = output_layout(a),
          .batch = a.batch,
          .heads = a.heads,
          .tokens = a.tokens,
          .rounds = a.rounds,
          .chunk = a.chunk,
          .before = a.before,
          .after = a.after,
          .causal = a.causal == ChunkAttentionAttrs::Causal::kYes ? 1u : 0u,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_width)))};
}

bool has_order(const Node& node) {
  return node.inputs[1] != kNoTensor;
}

bool has_mask(const Node& node) {
  return node.inputs[2] != kNoTensor;
}

bool is_shared(const ChunkAttentionAttrs& a) {
  return a.keys == ChunkAttentionAttrs::Keys::kQueries;
}

uint64_t keys_of_query(const ChunkAttentionAttrs& a) {
  return uint64_t{a.chunk} * (1ull + a.before + a.after);
}

uint64_t chunks_of(const ChunkAttentionAttrs& a) {
  return uint64_t{a.rounds} * a.tokens / a.chunk;
}

// An invocation a query: what software devices take, and what would be too much for blocks. A
// software device wants one lane group, others a chunk's worth.
uint32_t set_queries(Dispatch& d, const DeviceCaps& caps, const Node& node,
                     const ChunkAttentionAttrs& a) {
  const uint32_t lanes = caps.device_class == DeviceClass::kSoftware
                             ? std::clamp(std::bit_ceil(std::max(1u, caps.subgroup_size)), 4u, 64u)
                             : std::clamp(std::bit_ceil(a.chunk), 32u, kMostChunkQueries);
  d.kernel = KernelId::chunk_attention_query__f32_none_f32;
  d.set_constants(ChunkAttentionConstants{.local_size = lanes,
                                          .width = a.head_width,
                                          .value_width = a.value_width,
                                          .has_order = has_order(node),
                                          .has_mask = has_mask(node),
                                          .shared = is_shared(a),
                                          .stats = a.rounds > 1});
  return lanes;
}

uint32_t set_blocks(Dispatch& d, const AttentionBlocks& blocks, const Node& node,
                    const ChunkAttentionAttrs& a) {
  uint32_t all = a.head_width | a.value_width;
  for (const HeadLayout& l : {a.q, a.k, a.v}) {
    all |= l.offset | l.batch_stride | l.head_stride | l.row_stride;
  }
  d.kernel = KernelId::chunk_attention_blocks__f32_none_f32;
  d.set_constants(ChunkAttentionBlocksConstants{.local_size = blocks.local_size,
                                                .width = a.head_width,
                                                .value_width = a.value_width,
                                                .tile_m = blocks.tile_m,
                                                .stage_depth = blocks.stage_depth,
                                                .stage_keys = blocks.stage_keys,
                                                .quads = widest_load(all) >= 4,
                                                .has_order = has_order(node),
                                                .has_mask = has_mask(node),
                                                .shared = is_shared(a),
                                                .stats = a.rounds > 1});
  return blocks.rows();
}

// Picks the kernel; the queries of its workgroups.
uint32_t set_kernel(Dispatch& d, const DeviceCaps& caps, const Node& node,
                    const ChunkAttentionAttrs& a) {
  const AttentionSizes sizes{.queries = a.chunk,
                             .units = uint64_t{a.batch} * a.heads * chunks_of(a),
                             .head_width = a.head_width,
                             .value_width = a.value_width,
                             .row_floats = 4};  // where it stands, what keys are worth to it
  const auto blocks = attention_blocks(caps, sizes);
  if (!blocks || keys_of_query(a) >= (1ull << 31)) return set_queries(d, caps, node, a);
  return set_blocks(d, *blocks, node, a);
}

}  // namespace

Status lower_chunk_attention(LowerContext& context, const Node& node) {
  const ChunkAttentionAttrs& a = attrs_of<ChunkAttentionAttrs>(node);
  const uint64_t window = keys_of_query(a);
  if (leaves_loops(context.caps, 2 * window)) {
    return unsupported(message({"[chunk_attention] There is no kernel for ", window,
                                " keys a query on a software device; use shorter chunks"}));
  }
  Dispatch d = make_dispatch(node, KernelId::chunk_attention_query__f32_none_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {has_order(node) ? node.inputs[1] : node.inputs[0], Access::kRead},
                {has_mask(node) ? node.inputs[2] : node.inputs[0], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_push(kernel_params(a));
  const uint32_t local = set_kernel(d, context.caps, node, a);
  const uint64_t groups = chunks_of(a) * ((a.chunk + local - 1) / local);
  if (groups > context.caps.limits.max_group_count[0]) {
    return unsupported(message(
        {"[chunk_attention] ", groups, " workgroups of queries are above the device's limit of ",
         context.caps.limits.max_group_count[0], "; use longer chunks or a shorter sequence"}));
  }
  const uint64_t units = uint64_t{a.batch} * a.heads;
  d.groups = {static_cast<uint32_t>(groups),
              static_cast<uint32_t>(std::min<uint64_t>(units, kRowsPerGridLine)),
              static_cast<uint32_t>((units + kRowsPerGridLine - 1) / kRowsPerGridLine)};
  const double queries = static_cast<double>(units) * a.rounds * a.tokens;
  const double widths = (is_shared(a) ? 2.0 : 1.0) * a.head_width + a.value_width;
  d.flops = 2.0 * queries * static_cast<double>(window) * widths;
  d.bytes = 4.0 * queries * (widths + static_cast<double>(window) / local * widths);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
