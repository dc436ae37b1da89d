#include "model/blocks/expert_layer.h"

#include "model/blocks/stack.h"

namespace vkformer {

Result<TensorId> add_expert_layer(ModelBuilder& b, const StackConfig& c, const std::string& rows,
                                  TensorId x, const LinearAttrs& down) {
  const ExpertSetup& setup = c.experts;
  const GatePairs gate = c.gate == StackConfig::Gate::kYes ? GatePairs::kPairs : GatePairs::kNo;
  VKF_ASSIGN(const TensorId logits, add_named_linear(b, rows + ".router", x));
  TensorId bias = kNoTensor;
  if (setup.choice_bias) {
    VKF_ASSIGN(bias, b.table(rows + ".choice"));
  }
  ExpertsInputs inputs{.x = x, .residual = down.residual};
  VKF_ASSIGN(inputs.routes, add_expert_route(b.graph(), logits, bias, setup.route));
  if (setup.shared_ffn > 0) {
    VKF_ASSIGN(const TensorId up, add_named_linear(b, rows + ".shared.up", x,
                                                   {.activation = c.activation, .gate = gate}));
    // Without a gate it takes the residual along.
    const LinearAttrs shared_down = setup.shared_gated ? LinearAttrs{.alpha = down.alpha} : down;
    VKF_ASSIGN(const TensorId shared, add_named_linear(b, rows + ".shared.down", up, shared_down));
    (setup.shared_gated ? inputs.always : inputs.residual) = shared;
  }
  VKF_ASSIGN(const ExpertWeight up, b.experts(rows + ".experts.up"));
  VKF_ASSIGN(const ExpertWeight down_weight, b.experts(rows + ".experts.down"));
  b.graph().set_scope(rows + ".experts");
  return add_experts(b.graph(), inputs, up, down_weight,
                     {.choices = setup.route.choices,
                      .activation = c.activation,
                      .gate = gate,
                      .gate_limit = setup.gate_limit,
                      .scale = down.alpha});
}

}  // namespace vkformer
