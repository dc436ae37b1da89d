#include "ops/resize_grid.h"

#include "base/message.h"
#include "base/narrow.h"
#include "ops/node_attrs.h"
#include "ops/row_op.h"
#include "params/resize_grid.h"

namespace vkformer {
namespace {

// Tokens a side, so that the parts of all places are whole numbers of 31 bits.
constexpr uint32_t kMostGridSide = 1 << 14;

std::string sizes_text(const ResizeGridAttrs& a) {
  return std::to_string(a.height) + "x" + std::to_string(a.width) + " to " +
         std::to_string(a.out_height) + "x" + std::to_string(a.out_width);
}

}  // namespace

SideMap side_map(uint32_t from, uint32_t to, ResizeGridAttrs::Corners corners) {
  if (corners == ResizeGridAttrs::Corners::kAligned) {
    return to == 1 ? SideMap{} : SideMap{from - 1, to - 1, 0};
  }
  if (corners == ResizeGridAttrs::Corners::kHalves) return {4, 2, 1};
  return {2 * from, 2 * to, static_cast<int32_t>(from) - static_cast<int32_t>(to)};
}

Result<TensorDesc> check_resize_grid(const TensorDesc& x, const ResizeGridAttrs& a) {
  for (const uint32_t side : {a.height, a.width, a.out_height, a.out_width}) {
    if (side >= 1 && side <= kMostGridSide) continue;
    return op_error(OpId::k_resize_grid,
                    message({"The grids are ", sizes_text(a), " tokens, but a side must be 1 to ",
                             kMostGridSide, "."}));
  }
  if (a.corners == ResizeGridAttrs::Corners::kHalves &&
      (a.out_height != (a.height + 1) / 2 || a.out_width != (a.width + 1) / 2)) {
    return op_error(OpId::k_resize_grid,
                    message({"The grids are ", sizes_text(a), " tokens, but means of 2 x 2 leave ",
                             (a.height + 1) / 2, "x", (a.width + 1) / 2, "."}));
  }
  const bool fits =
      x.dtype == DType::kF32 && x.shape.size() == 3 && x.shape[1] == int64_t{a.height} * a.width;
  if (!fits) {
    return op_error(OpId::k_resize_grid,
                    message({"x is ", dtype_name(x.dtype), " ", shape_text(x.shape),
                             ", but must be F32 (B, ", int64_t{a.height} * a.width, ", C)."}));
  }
  const int64_t tokens = int64_t{a.out_height} * a.out_width;
  if (tokens * x.shape[0] * x.shape[2] >= (int64_t{1} << 32)) {
    return op_error(OpId::k_resize_grid,
                    message({"The output has ", tokens, " tokens of ", x.shape[2],
                             " channels, but at most 2^32 - 1 elements are possible."}));
  }
  return TensorDesc{"resize_grid", DType::kF32, {x.shape[0], tokens, x.shape[2]}};
}

Result<TensorId> add_resize_grid(Graph& graph, TensorId x, const ResizeGridAttrs& attrs) {
  VKF_ASSIGN(TensorDesc out, check_resize_grid(graph.tensor(x), attrs));
  Node node = make_node<OpId::k_resize_grid>(attrs, sizes_text(attrs));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_resize_grid(LowerContext& context, const Node& node) {
  if (context.graph.is_step()) {
    return unsupported(
        "[resize_grid] There is no kernel for a decoding step; resize before it, in the encoder's "
        "pass");
  }
  const auto& a = attrs_of<ResizeGridAttrs>(node);
  const Shape& shape = context.desc(node.inputs[0]).shape;
  const SideMap y = side_map(a.height, a.out_height, a.corners);
  const SideMap x = side_map(a.width, a.out_width, a.corners);
  ResizeGridParams params{};
  params.rows = u32(shape[0] * a.out_height * a.out_width);
  params.channels = u32(shape[2]);
  params.height = a.height;
  params.width = a.width;
  params.out_height = a.out_height;
  params.out_width = a.out_width;
  params.factor_y = y.factor;
  params.divisor_y = y.divisor;
  params.shift_y = y.shift;
  params.factor_x = x.factor;
  params.divisor_x = x.divisor;
  params.shift_x = x.shift;
  Dispatch d = make_row_dispatch(context, node, KernelId::resize_grid_row__f32_none_f32,
                                 params.rows, params.channels);
  d.set_push(params);
  const double elements = static_cast<double>(params.rows) * params.channels;
  d.flops = 9.0 * elements;
  d.bytes = 20.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
