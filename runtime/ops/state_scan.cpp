#include "ops/state_scan.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/state_scan.h"

namespace vkformer {
namespace {

using Rule = StateScanAttrs::Rule;

// Elements of a column of S that an invocation holds in registers, on a GPU. Blocks of products of
// 32 mean that it has 64 registers, where 32 elements with the delta rule spill as many.
uint32_t most_registers(const DeviceCaps& caps) {
  return caps.gpu.matmul_block > 32 ? 32 : 16;
}

// Words of keys and of queries that a workgroup stages.
constexpr uint32_t kStagedWords = 1024;

// How a workgroup takes columns of S.
struct ScanLaunch {
  uint32_t split = 1;    // invocations that share a column
  uint32_t columns = 1;  // of a workgroup
  uint32_t tokens = 1;   // staged at once
  uint32_t count = 1;    // tokens of a dispatch

  uint32_t local() const { return split * columns; }
};

ScanLaunch launch_of(const DeviceCaps& caps, const StateScanAttrs& a) {
  ScanLaunch l;
  const bool software = caps.device_class == DeviceClass::kSoftware;
  if (software) {
    // An invocation is a vector lane, whose memory is as good as registers; barriers are dear.
    l.columns = std::clamp(std::bit_ceil(std::max(1u, caps.subgroup_size)), 4u, 64u);
  } else {
    while (a.width > most_registers(caps) * l.split) l.split *= 2;
    l.columns = std::max(1u, 64u / l.split);
    l.columns = std::min(l.columns, std::bit_ceil(a.value_width));
  }
  const uint32_t padded = (a.width + l.split - 1) / l.split * l.split;
  l.tokens = std::clamp(kStagedWords / padded, 1u, 16u);
  const uint64_t rounds = 2 * uint64_t{a.width} + 4 * uint64_t{padded} / l.local() + 8;
  l.count = static_cast<uint32_t>(
      std::max<uint64_t>(1, software ? kMostSoftwareIterations / (2 * rounds) : 4096));
  return l;
}

KernelId scan_kernel(bool subgroup, bool step, bool full) {
  if (subgroup) {
    return step   ? KernelId::state_scan_step__f32_none_f32_subgroup
           : full ? KernelId::state_scan_full__f32_none_f32_subgroup
                  : KernelId::state_scan_prompt__f32_none_f32_subgroup;
  }
  return step   ? KernelId::state_scan_step__f32_none_f32
         : full ? KernelId::state_scan_full__f32_none_f32
                : KernelId::state_scan_prompt__f32_none_f32;
}

}  // namespace

Result<TensorDesc> check_state_scan(const TensorDesc& x, const TensorDesc& rates,
                                    const TensorDesc* states, const StateScanAttrs& a) {
  VKF_CHECK(check_floats(OpId::k_state_scan, "x", x, 2));
  if (a.heads < 1 || a.key_heads < 1 || a.heads % a.key_heads != 0 || a.width < 1 ||
      a.width > kMostStateWidth || a.value_width < 1) {
    return op_error(OpId::k_state_scan,
                    message({a.heads, " heads of ", a.width, " and ", a.value_width,
                             " columns share ", a.key_heads,
                             " heads of keys; the heads must be a multiple of those, and keys have "
                             "1 to ",
                             kMostStateWidth, " columns"}));
  }
  const int64_t keys = int64_t{a.key_heads} * a.width;
  const int64_t b_end = a.rule == Rule::kDelta ? int64_t{a.b_offset} + a.heads : 0;
  const int64_t end = std::max({int64_t{a.q_offset} + keys, int64_t{a.k_offset} + keys,
                                int64_t{a.v_offset} + int64_t{a.heads} * a.value_width,
                                int64_t{a.a_offset} + a.heads, b_end});
  if (end > x.shape.back()) {
    return op_error(OpId::k_state_scan, message({"x has shape ", shape_text(x.shape),
                                                 ", but its rows must have at "
                                                 "least ",
                                                 end, " columns"}));
  }
  const int64_t rate_rows = a.rule == Rule::kDelta ? 2 : 3;
  if (rates.dtype != DType::kF32 || rates.shape != Shape{rate_rows, a.heads}) {
    return op_error(OpId::k_state_scan,
                    message({"rates is ", dtype_name(rates.dtype), " ", shape_text(rates.shape),
                             ", but must be F32 (", rate_rows, ", ", a.heads, ")"}));
  }
  const bool good =
      states == nullptr || (states->dtype == DType::kF32 && states->shape.size() == 5 &&
                            states->shape[1] >= 2 && states->shape[2] == a.heads &&
                            states->shape[3] == a.width && states->shape[4] == a.value_width);
  if (!good) {
    return op_error(OpId::k_state_scan, message({"states has shape ", shape_text(states->shape),
                                                 ", but must be F32 (R, at least 2, ", a.heads,
                                                 ", ", a.width, ", ", a.value_width, ")"}));
  }
  if (!(a.norm_epsilon >= 0) || !(a.least_rate <= a.most_rate)) {
    return op_error(OpId::k_state_scan,
                    message({"norm_epsilon is ", a.norm_epsilon, " and the limits of rates are ",
                             a.least_rate, " and ", a.most_rate,
                             "; the first must not be negative, and the limits in order"}));
  }
  Shape shape = x.shape;
  shape.back() = int64_t{a.heads} * a.value_width;
  return TensorDesc{"state_scan", DType::kF32, std::move(shape)};
}

Result<TensorId> add_state_scan(Graph& graph, const StateScanInputs& in,
                                const StateScanAttrs& attrs) {
  const TensorDesc* states =
      in.carried.states == kNoTensor ? nullptr : &graph.tensor(in.carried.states);
  const TensorDesc& x = graph.tensor(in.x);
  VKF_ASSIGN(TensorDesc out, check_state_scan(x, graph.tensor(in.rates), states, attrs));
  VKF_CHECK(check_state_tensors(OpId::k_state_scan, graph, x, in.carried));
  Node node = make_node<OpId::k_state_scan>(
      attrs, message({attrs.rule == Rule::kDelta ? "delta" : "selective", " H=", attrs.heads,
                      " Hk=", attrs.key_heads, " E=", attrs.width, " Ev=", attrs.value_width}));
  node.inputs = {in.x, in.rates, in.carried.states, in.carried.state, in.carried.parents};
  const TensorId y = graph.add_tensor(std::move(out));
  node.outputs = {y};
  if (states != nullptr) node.outputs.push_back(in.carried.states);
  graph.add_node(std::move(node));
  return y;
}

Status lower_state_scan(LowerContext& context, const Node& node) {
  const auto& a = attrs_of<StateScanAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const bool step = context.graph.is_step(), full = node.inputs[2] == kNoTensor;
  const auto items = static_cast<uint32_t>(x.shape[0]);
  const uint32_t tokens = step ? 1u : static_cast<uint32_t>(x.shape[1]);
  const ScanLaunch l = launch_of(context.caps, a);
  if (step && a.run > l.count) {
    return op_error(OpId::k_state_scan, message({"a step may hold ", a.run,
                                                 " tokens of a row, but this device ends "
                                                 "loops that take more than ",
                                                 l.count, "; give it fewer at once"}));
  }
  const bool several = !step && tokens > l.count;
  const uint64_t words = uint64_t{a.heads} * a.width * a.value_width;
  // What one dispatch of a full pass leaves to the next; a single one has nothing to leave.
  const uint32_t states =
      full ? context.add_scratch("states", several ? 4 * words * items : 4) : node.inputs[2];
  StateScanParams params{.tokens = tokens,
                         .first = 0,
                         .count = 1,
                         .width = static_cast<uint32_t>(x.shape.back()),
                         .q_offset = a.q_offset,
                         .k_offset = a.k_offset,
                         .v_offset = a.v_offset,
                         .a_offset = a.a_offset,
                         .b_offset = a.b_offset,
                         .heads = a.heads,
                         .sharing = a.heads / a.key_heads,
                         .value_width = a.value_width,
                         .lines = 1,
                         .beams = a.beams,
                         .q_scale = a.q_scale,
                         .norm_epsilon = a.norm_epsilon,
                         .least_rate = a.least_rate,
                         .most_rate = a.most_rate};
  if (!full) params.lines = static_cast<uint32_t>(context.desc(states).shape[1]);
  const bool subgroup =
      context.caps.subgroup() && l.split > 1 && l.split <= context.caps.subgroup_size;
  for (; params.first < tokens; params.first += l.count) {
    params.count = std::min(l.count, tokens - params.first);
    Dispatch d = make_dispatch(node, scan_kernel(subgroup, step, full));
    d.bindings = {{node.inputs[0], Access::kRead},
                  {node.inputs[1], Access::kRead},
                  {states, Access::kReadWrite},
                  {node.outputs[0], Access::kWrite}};
    if (!full) d.bindings.push_back({node.inputs[3], Access::kRead});
    if (step) d.bindings.push_back({node.inputs[4], Access::kRead});
    d.set_push(params);
    d.set_constants(StateScanConstants{.local_size = l.local(),
                                       .split = l.split,
                                       .width = a.width,
                                       .tokens = step ? 1u : l.tokens,
                                       .delta = a.rule == Rule::kDelta,
                                       .normed = a.norm_epsilon > 0,
                                       .store = !full || several});
    d.groups = {items, a.heads, (a.value_width + l.columns - 1) / l.columns};
    if (step) d.live_axis = 0;
    const double taken = static_cast<double>(items) * params.count;
    d.flops = taken * static_cast<double>(words) * (a.rule == Rule::kDelta ? 8.0 : 5.0);
    d.bytes = 4.0 * taken * params.width + 8.0 * items * static_cast<double>(words);
    context.plan.dispatches.push_back(std::move(d));
  }
  return {};
}

}  // namespace vkformer
