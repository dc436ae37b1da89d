#include "ops/grid_distances.h"

#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "ops/row_op.h"
#include "params/grid_distances.h"

namespace vkformer {
namespace {

constexpr uint32_t kMostDistanceSide = 1 << 12;  // tokens

}  // namespace

Result<TensorDesc> check_grid_distances(const TensorDesc& qkv, const TensorDesc& table,
                                        const GridDistancesAttrs& a) {
  VKF_CHECK(check_floats(OpId::k_grid_distances, "qkv", qkv, 3));
  VKF_CHECK(check_floats(OpId::k_grid_distances, "table", table, 2));
  const bool sides = a.height >= 1 && a.width >= 1 && a.height <= kMostDistanceSide &&
                     a.width <= kMostDistanceSide && a.heads >= 1 && std::isfinite(a.scale);
  if (!sides) {
    return op_error(
        OpId::k_grid_distances,
        message({"The grid is ", a.height, "x", a.width, " tokens with ", a.heads,
                 " heads and a scale of ", number_text(a.scale), ", but a side must be 1 to ",
                 kMostDistanceSide, ", heads at least 1 and the scale finite."}));
  }
  const int64_t tokens = int64_t{a.height} * a.width;
  const int64_t e = table.shape.back();
  const bool fits = qkv.shape.size() == 3 && qkv.shape[1] == tokens && e >= 1 &&
                    qkv.shape[2] == 3 * e * a.heads &&
                    table.shape == Shape{2 * int64_t{a.height} + 2 * int64_t{a.width} - 2, e};
  if (!fits) {
    return op_error(
        OpId::k_grid_distances,
        message({"qkv has shape ", shape_text(qkv.shape), " and the table ",
                 shape_text(table.shape), ", but must be (B, ", tokens, ", 3 * ", a.heads,
                 " * E) and (", 2 * int64_t{a.height} + 2 * int64_t{a.width} - 2, ", E)."}));
  }
  const int64_t columns = a.heads * (2 * grid_distance_width(e, a) + e);
  if (columns >= (int64_t{1} << 31) || qkv.shape[0] * tokens * columns >= (int64_t{1} << 32)) {
    return op_error(OpId::k_grid_distances,
                    message({"The output has ", qkv.shape[0] * tokens, " rows of ", columns,
                             " columns, but at most 2^32 - 1 elements are possible."}));
  }
  return TensorDesc{"grid_distances", DType::kF32, {qkv.shape[0], tokens, columns}};
}

Result<TensorId> add_grid_distances(Graph& graph, TensorId qkv, TensorId table,
                                    const GridDistancesAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_grid_distances(graph.tensor(qkv), graph.tensor(table), attrs));
  Node node = make_node<OpId::k_grid_distances>(
      attrs, message({"H=", attrs.heads, " ", attrs.height, "x", attrs.width,
                      " scale=", number_text(attrs.scale)}));
  node.inputs = {qkv, table};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_grid_distances(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[grid_distances] There is no kernel for a decoding step; use it in full passes");
  }
  const auto& a = attrs_of<GridDistancesAttrs>(node);
  const Shape& y = context.desc(node.outputs[0]).shape;
  GridDistancesParams params{};
  params.rows = u32(y[0] * y[1]);
  params.heads = a.heads;
  params.head_width = u32(context.desc(node.inputs[1]).shape[1]);
  params.height = a.height;
  params.width = a.width;
  params.columns = u32(y[2]);
  params.scale = a.scale;
  const uint32_t local = row_local_size(context.caps, params.columns);
  // An invocation goes over a head's columns for every product.
  if (leaves_loops(context.caps,
                   2 * (uint64_t{params.columns} / local + 1) * (params.head_width + 1))) {
    return unsupported(message({"[grid_distances] There is no kernel for ", params.columns,
                                " columns on a software device; take smaller pictures"}));
  }
  Dispatch d = make_row_dispatch(context, node, KernelId::grid_distances_row__f32_none_f32,
                                 params.rows, params.columns);
  d.set_push(params);
  const double rows = params.rows;
  d.flops = 2.0 * rows * a.heads * (a.height + a.width) * params.head_width;
  d.bytes = 4.0 * rows * (params.columns + 3.0 * a.heads * params.head_width);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
