#include "ops/mix_rounds.h"

#include "base/message.h"
#include "ops/row_op.h"
#include "params/lsh.h"

namespace vkformer {

Result<TensorDesc> check_mix_rounds(const TensorDesc& x) {
  VKF_CHECK(check_floats(OpId::k_mix_rounds, "x", x, 5));
  const Shape& s = x.shape;
  bool fits = s.size() == 5 && s.back() >= 3;
  for (int64_t size : s) fits = fits && size >= 1;
  if (!fits) {
    return op_error(
        OpId::k_mix_rounds,
        message({"x has shape ", shape_text(s),
                 ", but must be (B, H, R, S, Ev + 2): results, highest score, weight."}));
  }
  return TensorDesc{"mix_rounds", DType::kF32, {s[0], s[3], s[1] * (s[4] - 2)}};
}

Result<TensorId> add_mix_rounds(Graph& graph, TensorId x) {
  VKF_ASSIGN(TensorDesc out, check_mix_rounds(graph.tensor(x)));
  Node node = make_node<OpId::k_mix_rounds>(MixRoundsAttrs{},
                                            "rounds=" + std::to_string(graph.tensor(x).shape[2]));
  node.inputs = {x};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_mix_rounds(LowerContext& context, const Node& node) {
  const Shape& s = context.desc(node.inputs[0]).shape;
  const MixRoundsParams params{.heads = static_cast<uint32_t>(s[1]),
                               .tokens = static_cast<uint32_t>(s[3]),
                               .rounds = static_cast<uint32_t>(s[2]),
                               .width = static_cast<uint32_t>(s[4] - 2),
                               .rows = static_cast<uint32_t>(s[0] * s[1] * s[3])};
  Dispatch d = make_row_dispatch(context, node, KernelId::mix_rounds_row__f32_none_f32, params.rows,
                                 params.width);
  d.set_push(params);
  const double elements = static_cast<double>(element_count(s));
  d.flops = 4.0 * elements;
  d.bytes = 4.0 * (elements + static_cast<double>(params.rows) * params.width);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
