#include "ops/causal_conv.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/causal_conv.h"

namespace vkformer {
namespace {

using Gates = CausalConvAttrs::Gates;
using Columns = CausalConvAttrs::Columns;

// K.
int64_t tap_count(const Shape& taps, const CausalConvAttrs& a) {
  return taps[0] - (a.bias ? 1 : 0);
}

Status check_states(const TensorDesc& states, int64_t taps, int64_t channels) {
  const Shape& s = states.shape;
  if (states.dtype == DType::kF32 && s.size() == 4 && s[1] >= 2 && s[2] == taps - 1 &&
      s[3] == channels) {
    return {};
  }
  return op_error(OpId::k_causal_conv,
                  message({"states is ", dtype_name(states.dtype), " ", shape_text(s),
                           ", but must be F32 (R, at least 2, ", taps - 1, ", ", channels, ")"}));
}

}  // namespace

Result<TensorDesc> check_causal_conv(const TensorDesc& x, const TensorDesc& taps,
                                     const TensorDesc* states, const CausalConvAttrs& a) {
  VKF_CHECK(check_floats(OpId::k_causal_conv, "x", x, 2));
  VKF_CHECK(check_floats(OpId::k_causal_conv, "taps", taps, 2));
  if (taps.shape.size() != 2 || tap_count(taps.shape, a) < 1 ||
      tap_count(taps.shape, a) > kMostConvTaps) {
    return op_error(OpId::k_causal_conv,
                    message({"taps has shape ", shape_text(taps.shape),
                             ", but must be (K, C) with "
                             "1 to ",
                             kMostConvTaps, " taps", a.bias ? " and a row of biases" : ""}));
  }
  const int64_t channels = taps.shape[1], width = x.shape.back();
  const int64_t gates = a.gates == Gates::kYes ? std::max(a.in_gate, a.out_gate) : 0u;
  if (channels < 1 || std::max(int64_t{a.first}, gates) + channels > width) {
    return op_error(OpId::k_causal_conv, message({channels, " channels from column ", a.first,
                                                  " on and their gates do not lie in a row of x ",
                                                  shape_text(x.shape)}));
  }
  if (states != nullptr) VKF_CHECK(check_states(*states, tap_count(taps.shape, a), channels));
  Shape shape = x.shape;
  if (a.columns == Columns::kChannels) shape.back() = channels;
  return TensorDesc{"causal_conv", DType::kF32, std::move(shape)};
}

Result<TensorId> add_causal_conv(Graph& graph, const CausalConvInputs& in,
                                 const CausalConvAttrs& attrs) {
  const TensorDesc* states =
      in.carried.states == kNoTensor ? nullptr : &graph.tensor(in.carried.states);
  const TensorDesc& x = graph.tensor(in.x);
  VKF_ASSIGN(TensorDesc out, check_causal_conv(x, graph.tensor(in.taps), states, attrs));
  VKF_CHECK(check_state_tensors(OpId::k_causal_conv, graph, x, in.carried));
  const int64_t taps = tap_count(graph.tensor(in.taps).shape, attrs);
  Node node = make_node<OpId::k_causal_conv>(
      attrs, message({"taps=", taps, " channels=", graph.tensor(in.taps).shape[1],
                      attrs.gates == Gates::kYes ? " gated" : ""}));
  node.inputs = {in.x, in.taps, in.mask, in.carried.states, in.carried.state, in.carried.parents};
  const TensorId y = graph.add_tensor(std::move(out));
  node.outputs = {y};
  if (states != nullptr) node.outputs.push_back(in.carried.states);
  graph.add_node(std::move(node));
  return y;
}

Status lower_causal_conv(LowerContext& context, const Node& node) {
  const auto& a = attrs_of<CausalConvAttrs>(node);
  const TensorDesc& x = context.desc(node.inputs[0]);
  const Shape& taps = context.desc(node.inputs[1]).shape;
  const TensorId mask = node.inputs[2], states = node.inputs[3];
  const bool step = context.graph.is_step(), full = states == kNoTensor;
  const auto channels = static_cast<uint32_t>(taps[1]);
  const bool all = a.columns == Columns::kAll;
  CausalConvParams params{};
  params.rows = static_cast<uint32_t>(row_count(x.shape));
  params.tokens = step ? 1u : static_cast<uint32_t>(x.shape[1]);
  params.width = static_cast<uint32_t>(x.shape.back());
  params.out_width = all ? params.width : channels;
  params.channels = channels;
  params.first = a.first;
  params.to = all ? a.first : 0u;
  params.in_gate = a.in_gate;
  params.out_gate = a.out_gate;
  params.lines = full ? 1u : static_cast<uint32_t>(context.desc(states).shape[1]);
  params.beams = a.beams;
  const uint32_t local = row_local_size(context.caps, params.out_width);
  params.block = run_length(context.caps, local);
  Dispatch d = make_dispatch(node, step   ? KernelId::causal_conv_step__f32_f32_f32
                                   : full ? KernelId::causal_conv_full__f32_f32_f32
                                          : KernelId::causal_conv_prompt__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  if (full) d.bindings.push_back({mask == kNoTensor ? node.inputs[0] : mask, Access::kRead});
  if (!full) {
    d.bindings.push_back({states, step ? Access::kReadWrite : Access::kWrite});
    d.bindings.push_back({node.inputs[4], Access::kRead});
  }
  if (step) d.bindings.push_back({node.inputs[5], Access::kRead});
  d.set_push(params);
  const auto count = static_cast<uint32_t>(tap_count(taps, a));
  d.set_constants(CausalConvConstants{.local_size = local,
                                      .taps = count,
                                      .activation = static_cast<uint32_t>(a.activation),
                                      .gated = a.gates == Gates::kYes,
                                      .has_mask = full && mask != kNoTensor,
                                      .has_bias = a.bias});
  set_row_groups(context, d, params.rows, 1);
  d.groups[2] = (params.out_width + params.block - 1) / params.block;
  const double values = static_cast<double>(params.rows) * channels;
  d.flops = values * (2.0 * count + 20);
  d.bytes = 8.0 * params.rows * params.width + (full ? 0.0 : 8.0 * values * count);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
