#include "ops/lsh_sort.h"

#include <bit>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/lsh.h"

namespace vkformer {
namespace {

constexpr uint32_t kDigitBits = std::countr_zero(unsigned{VKF_SORT_DIGITS});

}  // namespace

Result<TensorDesc> check_lsh_sort(const TensorDesc& buckets, const LshSortAttrs& attrs) {
  if (buckets.dtype != DType::kU32 || buckets.shape.size() != 4) {
    return op_error(OpId::k_lsh_sort,
                    message({"buckets is ", dtype_name(buckets.dtype), " ",
                             shape_text(buckets.shape), ", but must be U32 (B, H, R, S)."}));
  }
  for (int64_t size : buckets.shape) {
    if (size >= 1) continue;
    return op_error(OpId::k_lsh_sort, message({"buckets has shape ", shape_text(buckets.shape),
                                               ", but no dimension may be 0."}));
  }
  if (attrs.buckets >= 1) return TensorDesc{"order", DType::kU32, buckets.shape};
  return op_error(OpId::k_lsh_sort, "There are 0 buckets in a round, but must be at least one.");
}

Result<TensorId> add_lsh_sort(Graph& graph, TensorId buckets, const LshSortAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_lsh_sort(graph.tensor(buckets), attrs));
  Node node = make_node<OpId::k_lsh_sort>(attrs, "buckets=" + std::to_string(attrs.buckets));
  node.inputs = {buckets};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_lsh_sort(LowerContext& context, const Node& node) {
  const Shape& shape = context.desc(node.inputs[0]).shape;
  const uint32_t buckets = attrs_of<LshSortAttrs>(node).buckets;
  LshSortParams params{.tokens = static_cast<uint32_t>(shape[3]),
                       .rounds = static_cast<uint32_t>(shape[2]),
                       .stride = buckets,
                       .shift = 0,
                       .units = static_cast<uint32_t>(shape[0] * shape[1] * shape[2])};
  const uint32_t local = std::bit_floor(
      std::min({128u, context.caps.limits.max_invocations, context.caps.limits.max_group_size[0]}));
  if (leaves_loops(context.caps, params.tokens / local * 4)) {
    return unsupported(message({"[lsh_sort] There is no kernel for ", params.tokens,
                                " tokens on a software device; use a shorter sequence"}));
  }
  const uint32_t bits = std::max(1u, unsigned{std::bit_width(buckets - 1)});
  const uint32_t passes = (bits + kDigitBits - 1) / kDigitBits;
  // The positions go to and fro between the output and a scratch buffer; the last pass writes y.
  uint32_t places[] = {node.outputs[0], node.outputs[0]};
  if (passes > 1) places[1] = context.add_scratch("lsh_sort", word_bytes(shape));
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const uint32_t to = places[(passes - 1 - pass) % 2];
    const uint32_t from = pass == 0 ? node.inputs[0] : places[(passes - pass) % 2];
    params.shift = pass * kDigitBits;
    Dispatch d = make_dispatch(node, KernelId::lsh_sort_unit__u32_none_u32);
    d.bindings = {{node.inputs[0], Access::kRead}, {from, Access::kRead}, {to, Access::kWrite}};
    d.set_push(params);
    d.set_constants(LshSortConstants{.local_size = local, .first_pass = pass == 0});
    set_row_groups(context, d, params.units, 1);
    const double entries = static_cast<double>(params.units) * params.tokens;
    d.flops = 8.0 * entries;
    d.bytes = 20.0 * entries;
    context.plan.dispatches.push_back(std::move(d));
  }
  return {};
}

}  // namespace vkformer
