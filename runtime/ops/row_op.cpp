#include "ops/row_op.h"

#include <algorithm>

#include "base/message.h"
#include "params/constants.h"
#include "params/row_moves.h"

namespace vkformer {

Status check_floats(OpId op, const char* role, const TensorDesc& t, size_t min_rank) {
  if (t.dtype == DType::kF32 && t.shape.size() >= min_rank) return {};
  return op_error(op, message({role, " is ", dtype_name(t.dtype), " ", shape_text(t.shape),
                               ", but must be F32 with at least ", min_rank,
                               (min_rank == 1 ? " dimension." : " dimensions.")}));
}

TensorId add_single_output(Graph& graph, Node node, TensorDesc output) {
  const TensorId y = graph.add_tensor(std::move(output));
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

uint32_t run_length(const DeviceCaps& caps, uint32_t local_size) {
  // A software device runs a workgroup on one thread: long runs save the cost of starting it.
  return caps.device_class == DeviceClass::kSoftware ? 4096 : local_size * 4;
}

Dispatch make_row_dispatch(const LowerContext& context, const Node& node, KernelId kernel,
                           uint64_t rows, uint32_t width) {
  Dispatch d = make_dispatch(node, kernel);
  for (TensorId id : node.inputs) d.bindings.push_back({id, Access::kRead});
  for (TensorId id : node.outputs) d.bindings.push_back({id, Access::kWrite});
  d.set_constants(WorkgroupConstants{row_local_size(context.caps, width)});
  set_row_groups(context, d, rows, 1);
  return d;
}

Dispatch make_run_dispatch(const LowerContext& context, const Node& node, KernelId kernel,
                           uint64_t rows, uint32_t width) {
  Dispatch d = make_row_dispatch(context, node, kernel, rows, width);
  const uint32_t local = row_local_size(context.caps, width);
  const uint32_t run = run_length(context.caps, local);
  d.set_constants(RunConstants{.local_size = local, .chunk = run});
  d.groups[2] = std::max(1u, (width + run - 1) / run);
  d.flops = static_cast<double>(rows) * width;
  d.bytes = 8.0 * static_cast<double>(rows) * width;
  return d;
}

}  // namespace vkformer
