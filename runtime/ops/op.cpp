#include "ops/op.h"

#include <algorithm>

#include "base/message.h"
#include "graph/tensor_bytes.h"
#include "ops/fusion.h"
#include "ops/step_advance.h"

namespace vkformer {
namespace {

constexpr const char* kOpNames[] = {
#define VKF_OP(name) #name,
#include "ops/op_list.def"
#undef VKF_OP
};

// Tensors that fusion has left without a node take no memory.
void drop_unused(const Graph& graph, Plan& plan) {
  std::vector<bool> used(graph.tensors().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const TensorId id : *ids) {
        if (id != kNoTensor) used[id] = true;
      }
    }
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i] && plan.buffers[i].source == BufferSource::kArena) plan.buffers[i].bytes = 0;
  }
}

PlanBuffer plan_buffer(const TensorDesc& t) {
  PlanBuffer buffer{.name = t.name, .bytes = tensor_bytes(t), .shape = t.shape, .dtype = t.dtype};
  if (t.kind == TensorKind::kExternal) buffer.source = BufferSource::kExternal;
  if (t.kind == TensorKind::kConstant) {
    buffer.source = BufferSource::kConstant;
    buffer.constant = t.constant;
  }
  return buffer;
}

// The first dispatch from `first` on whose kernel is demoted, or null.
const Dispatch* find_demoted(const Plan& plan, size_t first, const DeviceCaps& caps) {
  for (size_t i = first; i < plan.dispatches.size(); ++i) {
    if (caps.is_demoted(plan.dispatches[i].kernel)) return &plan.dispatches[i];
  }
  return nullptr;
}

// What else the device could be, so that another kernel takes the place of a demoted one. It is the
// same without what only some kernels use, then lower tiers, each in the ways of every class. Ways
// are counted from 0. After the last way, the result is false.
bool make_lesser(DeviceCaps& caps, const DeviceCaps& own, uint32_t way) {
  const auto tier = static_cast<uint32_t>(own.tier);
  if (way / 6 > tier) return false;
  constexpr DeviceClass kClasses[] = {DeviceClass::kDiscrete, DeviceClass::kSoftware};
  caps.tier = static_cast<Tier>(tier - way / 6);
  caps.device_class = way % 3 == 0 ? own.device_class : kClasses[way % 3 - 1];
  caps.compiler.has_int64 = own.compiler.has_int64 && way % 6 < 3;
  caps.compiler.streams_uniform_loads = caps.compiler.wants_literals = caps.has_matrix2 =
      caps.has_dot8 = false;
  caps.compiler.max_table_parts = 0;
  return true;
}

// Lowers with the device's own capabilities or, where that gives a demoted kernel, with the first
// lesser ones that do not.
Status lower_node(LowerContext& context, const Node& node) {
  Plan& plan = context.plan;
  const auto dispatches = static_cast<std::ptrdiff_t>(plan.dispatches.size());
  const auto buffers = static_cast<std::ptrdiff_t>(plan.buffers.size());
  VKF_CHECK(node.lower(context, node));
  const Dispatch* wrong = find_demoted(plan, static_cast<size_t>(dispatches), context.caps);
  if (wrong == nullptr) return {};
  if (context.precision == Precision::kReproducible) {
    return unsupported(message({"[", node.op_name, "] The kernel ", kernel_info(wrong->kernel).name,
                                " gave wrong results on this device and driver, and another one "
                                "would give other bits; update the driver, or use the precision "
                                "'f32'."}));
  }
  const std::string name(kernel_info(wrong->kernel).name);
  DeviceCaps caps = context.caps;
  caps.tuned_matmul = {};
  for (uint32_t way = 0; make_lesser(caps, context.caps, way); ++way) {
    plan.dispatches.erase(plan.dispatches.begin() + dispatches, plan.dispatches.end());
    plan.buffers.erase(plan.buffers.begin() + buffers, plan.buffers.end());
    LowerContext lesser{context.graph, caps, context.precision, plan};
    const Status lowered = node.lower(lesser, node);
    if (lowered && !find_demoted(plan, static_cast<size_t>(dispatches), caps)) return {};
  }
  return unsupported(message({"[", node.op_name, "] Every kernel for this, such as ", name,
                              ", gave wrong results on this device and driver; update the driver, "
                              "or run `vkformer conformance --forget` and try again."}));
}

// Buffers that some dispatch binds as a whole.
std::vector<bool> bound_whole(const Plan& plan) {
  std::vector<bool> whole(plan.buffers.size());
  for (const Dispatch& d : plan.dispatches) {
    for (const BoundBuffer& b : d.bindings) {
      if (b.bytes == 0) whole[b.buffer] = true;
    }
  }
  return whole;
}

Status check_ranges(const Plan& plan, const DeviceCaps& caps) {
  const std::vector<bool> whole = bound_whole(plan);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& b = plan.buffers[i];
    if (b.bytes <= caps.limits.max_storage_range || !whole[i]) continue;
    const bool weight = b.source == BufferSource::kConstant;
    return unsupported(message({"[", b.name, "] needs ", b.bytes,
                                " bytes in one binding, but this device binds at most ",
                                caps.limits.max_storage_range, " bytes; ",
                                (weight ? "load the model with f16 weights, which need half of it"
                                        : "use a smaller batch or a shorter sequence")}));
  }
  return {};
}

}  // namespace

const char* op_name(OpId op) {
  return kOpNames[static_cast<size_t>(op)];
}

uint32_t LowerContext::add_scratch(std::string name, uint64_t bytes) {
  plan.buffers.push_back({.name = std::move(name), .bytes = bytes});
  return static_cast<uint32_t>(plan.buffers.size() - 1);
}

void set_row_groups(const LowerContext& context, Dispatch& dispatch, uint64_t rows,
                    uint32_t rows_per_group) {
  const uint64_t groups = (rows + rows_per_group - 1) / rows_per_group;
  dispatch.groups[0] = static_cast<uint32_t>(std::min<uint64_t>(groups, kRowsPerGridLine));
  dispatch.groups[1] = static_cast<uint32_t>(
      std::max<uint64_t>(1, (groups + kRowsPerGridLine - 1) / kRowsPerGridLine));
  if (context.graph.is_step()) {
    dispatch.live_axis = 0;
    dispatch.slots_per_group = rows_per_group;
  }
}

Dispatch make_dispatch(const Node& node, KernelId kernel) {
  Dispatch dispatch;
  dispatch.kernel = kernel;
  dispatch.label = node.label;
  return dispatch;
}

Error op_error(OpId op, const std::string& text) {
  return invalid_argument(message({"[", op_name(op), "] ", text}));
}

uint64_t word_bytes(const Shape& shape) {
  return 4 * static_cast<uint64_t>(element_count(shape));
}

uint64_t row_count(const Shape& shape) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<uint64_t>(shape[i]);
  return rows;
}

Result<Plan> make_plan(const Graph& unfused, const DeviceCaps& own, Precision precision) {
  const bool reproducible = precision == Precision::kReproducible;
  const DeviceCaps caps = reproducible ? reproducible_caps(own) : own;
  Plan plan;
  FusedGraph fused = fuse(unfused, caps, precision);
  const Graph& graph = fused.graph;
  plan.fusions = std::move(fused.fusions);
  plan.row_capacity = graph.row_capacity();
  for (const TensorDesc& t : graph.tensors()) plan.buffers.push_back(plan_buffer(t));
  drop_unused(graph, plan);
  LowerContext context{graph, caps, precision, plan};
  for (const Node& node : graph.nodes()) {
    const size_t first = plan.dispatches.size();
    Status lowered = lower_node(context, node);
    if (!lowered) return lowered.error().with_context(node.label.empty() ? "plan" : node.label);
    for (size_t i = first; i < plan.dispatches.size(); ++i) {
      plan.dispatches[i].op = node.op_name;
      plan.dispatches[i].reproducible = reproducible;
    }
  }
  VKF_CHECK(count_step_dispatches(plan));
  VKF_CHECK(check_ranges(plan, caps));
  plan_memory(plan, std::max<uint64_t>(256, caps.limits.storage_alignment));
  plan_barriers(plan);
  return plan;
}

}  // namespace vkformer
