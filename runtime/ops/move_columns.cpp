#include "ops/move_columns.h"

#include "base/message.h"
#include "base/narrow.h"
#include "ops/node_attrs.h"
#include "ops/row_op.h"
#include "params/decode_state.h"
#include "params/recurrent.h"

namespace vkformer {
namespace {

void add_move(Graph& graph, MoveColumnsAttrs attrs, std::vector<TensorId> inputs, TensorId y) {
  const MoveColumnsParams& p = attrs.params;
  Node node = make_node<OpId::k_move_columns>(attrs, "W=" + std::to_string(p.width) + " " +
                                                         std::to_string(p.x_offset) + " -> " +
                                                         std::to_string(p.y_offset));
  node.inputs = std::move(inputs);
  node.outputs = {y};
  graph.add_node(std::move(node));
}

}  // namespace

Status check_row_place(const TensorDesc& t, const char* role, const RowPlace& place, int64_t rows,
                       int64_t width) {
  VKF_CHECK(check_floats(OpId::k_move_columns, role, t, 1));
  const int64_t end = int64_t{place.offset} + (rows - 1) * place.stride + width;
  if (rows >= 1 && width >= 1 && element_count(t.shape) >= end) return {};
  return op_error(
      OpId::k_move_columns,
      message({rows, " rows of ", width, " columns, ", place.stride, " elements apart from ",
               place.offset, " on, do not lie inside ", role, " ", shape_text(t.shape)}));
}

Status check_state_cache(const TensorDesc& cache, const TensorDesc& ancestry, uint32_t column,
                         int64_t columns) {
  const bool lines = cache.dtype == DType::kF32 && cache.shape.size() == 3 && cache.shape[1] == 2;
  if (!lines || columns < 1 || cache.shape[2] < column + columns) {
    return op_error(OpId::k_move_columns,
                    message({"the cache is ", dtype_name(cache.dtype), " ", shape_text(cache.shape),
                             ", but must be F32 (rows, 2, at least ", column + columns, ")"}));
  }
  if (ancestry.dtype == DType::kU32) return {};
  return op_error(OpId::k_move_columns, message({"the ancestry is ", dtype_name(ancestry.dtype),
                                                 ", but must be U32 (R, C)"}));
}

Result<TensorId> add_columns(Graph& graph, TensorId x, const RowPlace& from, Shape shape) {
  const int64_t width = shape.empty() ? 0 : shape.back();
  const int64_t rows = u32(static_cast<int64_t>(row_count(shape)));
  if (x != kNoTensor) VKF_CHECK(check_row_place(graph.tensor(x), "x", from, rows, width));
  const TensorId y = graph.add_temporary("columns", DType::kF32, std::move(shape));
  VKF_CHECK(check_row_place(graph.tensor(y), "y", {0, u32(width)}, rows, width));
  add_move(graph,
           {.params = {.rows = u32(rows),
                       .width = u32(width),
                       .x_offset = from.offset,
                       .x_stride = from.stride,
                       .y_offset = 0,
                       .y_stride = u32(width),
                       .lines = 0,
                       .beams = 1}},
           {x}, y);
  return y;
}

Status add_place_columns(Graph& graph, TensorId x, TensorId y, const RowPlace& to) {
  const TensorDesc& from = graph.tensor(x);
  VKF_CHECK(check_floats(OpId::k_move_columns, "x", from, 1));
  const int64_t width = from.shape.back();
  const int64_t rows = static_cast<int64_t>(row_count(from.shape));
  VKF_CHECK(check_row_place(from, "x", {0, u32(width)}, rows, width));
  VKF_CHECK(check_row_place(graph.tensor(y), "y", to, rows, width));
  add_move(graph,
           {.params = {.rows = u32(rows),
                       .width = u32(width),
                       .x_offset = 0,
                       .x_stride = u32(width),
                       .y_offset = to.offset,
                       .y_stride = to.stride,
                       .lines = 0,
                       .beams = 1}},
           {x}, y);
  return {};
}

Result<TensorId> add_load_state(Graph& graph, const StateCache& c, uint32_t column, int64_t width) {
  if (!graph.is_step())
    return op_error(OpId::k_move_columns, "a state is loaded in decoding steps only");
  const TensorDesc& cache = graph.tensor(c.cache);
  VKF_CHECK(check_state_cache(cache, graph.tensor(c.ancestry), column, width));
  const uint32_t line = u32(cache.shape[2]);
  const TensorId y = graph.add_temporary("state", DType::kF32, {graph.row_capacity(), width});
  add_move(graph,
           {.params = {.rows = graph.row_capacity(),
                       .width = u32(width),
                       .x_offset = column,
                       .x_stride = line,
                       .y_offset = 0,
                       .y_stride = u32(width),
                       .lines = c.capacity,
                       .beams = c.beams},
            .kind = MoveColumnsAttrs::Kind::kLoad},
           {c.cache, c.ancestry, c.state}, y);
  return y;
}

Status add_store_state(Graph& graph, TensorId x, const StateCache& c, uint32_t column) {
  if (!graph.is_step())
    return op_error(OpId::k_move_columns, "a state is stored in decoding steps only");
  const TensorDesc& from = graph.tensor(x);
  const int64_t width = from.shape.back();
  const TensorDesc& cache = graph.tensor(c.cache);
  VKF_CHECK(check_state_cache(cache, graph.tensor(c.ancestry), column, width));
  VKF_CHECK(check_row_place(from, "x", {0, u32(width)}, graph.row_capacity(), width));
  add_move(graph,
           {.params = {.rows = graph.row_capacity(),
                       .width = u32(width),
                       .x_offset = 0,
                       .x_stride = u32(width),
                       .y_offset = column,
                       .y_stride = u32(cache.shape[2]),
                       .lines = c.capacity,
                       .beams = c.beams},
            .kind = MoveColumnsAttrs::Kind::kStore},
           {x, c.ancestry, c.state}, c.cache);
  return {};
}

Status lower_move_columns(LowerContext& context, const Node& node) {
  const MoveColumnsAttrs& a = attrs_of<MoveColumnsAttrs>(node);
  const bool plain = a.kind == MoveColumnsAttrs::Kind::kPlain;
  Dispatch d = make_dispatch(node, plain ? KernelId::move_columns_run__f32_none_f32
                                         : KernelId::move_columns_step__f32_none_f32);
  // With zeros, x's binding still needs a buffer, which the kernel does not read.
  const TensorId x = node.inputs[0];
  d.bindings = {{x, Access::kRead}};
  if (!plain) d.bindings.push_back({node.inputs[1], Access::kRead});
  d.bindings.push_back({node.outputs[0], Access::kWrite});
  if (!plain) d.bindings.push_back({node.inputs[2], Access::kRead});
  if (x == kNoTensor) d.bindings[0].buffer = context.add_scratch("nothing", 4);
  d.set_push(a.params);
  const uint32_t local = row_local_size(context.caps, a.params.width);
  const uint32_t run = run_length(context.caps, local);
  const auto from = static_cast<uint32_t>(a.kind);
  d.set_constants(MoveColumnsConstants{
      .local_size = local, .chunk = run, .from = plain ? (x == kNoTensor ? 0u : 1u) : from});
  set_row_groups(context, d, a.params.rows, 1);
  d.groups[2] = (a.params.width + run - 1) / run;
  const double elements = static_cast<double>(a.params.rows) * a.params.width;
  d.flops = elements;
  d.bytes = 8.0 * elements;
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
