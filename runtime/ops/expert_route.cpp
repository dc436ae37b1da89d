#include "ops/expert_route.h"

#include <cmath>

#include "base/message.h"
#include "ops/row_op.h"
#include "params/experts.h"

namespace vkformer {
namespace {

Error route_error(std::initializer_list<MessagePart> parts) {
  return op_error(OpId::k_expert_route, message(parts));
}

Status check_counts(const TensorDesc& logits, const ExpertRouteAttrs& a) {
  if (a.experts < 1 || a.experts > kMostExperts) {
    return route_error({"There are ", a.experts, " experts, but must be 1 to ", kMostExperts, "."});
  }
  if (logits.shape.back() < static_cast<int64_t>(a.experts)) {
    return route_error({"logits has shape ", shape_text(logits.shape),
                        ", whose rows are shorter than the ", a.experts, " experts."});
  }
  const int64_t entries = a.choices + logits.shape.back() - a.experts;
  if (a.choices < 1 || entries > kMostChoices) {
    return route_error({"A row takes ", a.choices, " of the experts and ", entries - a.choices,
                        " that every row takes, but must take at least 1, and at most ",
                        kMostChoices, " in all."});
  }
  return {};
}

Status check_groups(const ExpertRouteAttrs& a) {
  const bool fit = a.groups >= 1 && a.groups <= kMostExpertGroups && a.experts % a.groups == 0;
  if (!fit || (a.groups > 1 && a.experts / a.groups < 2)) {
    return route_error({"There are ", a.groups, " groups of ", a.experts,
                        " experts, but they must be 1 to ", kMostExpertGroups,
                        " of as many experts each, at least 2."});
  }
  if (a.kept_groups < 1 || a.kept_groups > a.groups) {
    return route_error(
        {"The best ", a.kept_groups, " groups are kept, but must be 1 to ", a.groups, "."});
  }
  const uint32_t most = a.experts / a.groups * a.kept_groups;
  if (a.choices <= most) return {};
  return route_error({"A row takes ", a.choices, " experts, but only ", most, " can be chosen."});
}

}  // namespace

Result<TensorDesc> check_expert_route(const TensorDesc& logits, const TensorDesc* bias,
                                      const ExpertRouteAttrs& attrs) {
  VKF_CHECK(check_floats(OpId::k_expert_route, "logits", logits, 1));
  VKF_CHECK(check_counts(logits, attrs));
  VKF_CHECK(check_groups(attrs));
  if (bias != nullptr) {
    VKF_CHECK(check_floats(OpId::k_expert_route, "bias", *bias, 1));
    if (element_count(bias->shape) != attrs.experts) {
      return route_error({"bias has shape ", shape_text(bias->shape), ", but there are ",
                          attrs.experts, " experts."});
    }
  }
  if (!std::isfinite(attrs.scale) || !(attrs.least_sum >= 0)) {
    return route_error({"scale is ", attrs.scale, " and least_sum ", attrs.least_sum,
                        ", but scale must be finite and least_sum at least 0."});
  }
  Shape shape = logits.shape;
  shape.back() += static_cast<int64_t>(attrs.choices) - attrs.experts;
  shape.push_back(2);
  return TensorDesc{"expert_route", DType::kU32, std::move(shape)};
}

Result<TensorId> add_expert_route(Graph& graph, TensorId logits, TensorId bias,
                                  const ExpertRouteAttrs& attrs) {
  const TensorDesc* biases = bias == kNoTensor ? nullptr : &graph.tensor(bias);
  VKF_ASSIGN(TensorDesc out, check_expert_route(graph.tensor(logits), biases, attrs));
  std::string text = message({attrs.choices, " of ", attrs.experts});
  if (attrs.groups > 1) text += message({" groups=", attrs.kept_groups, " of ", attrs.groups});
  if (attrs.scores == ExpertRouteAttrs::Scores::kSigmoid) text += " sigmoid";
  if (attrs.normalize) text += " normalize";
  if (attrs.scale != 1.0f) text += " scale=" + number_text(attrs.scale);
  Node node = make_node<OpId::k_expert_route>(attrs, std::move(text));
  node.inputs = {logits, bias};
  return add_single_output(graph, std::move(node), std::move(out));
}

Status lower_expert_route(LowerContext& context, const Node& node) {
  const auto& attrs = attrs_of<ExpertRouteAttrs>(node);
  const Shape& logits = context.desc(node.inputs[0]).shape;
  const ExpertRouteParams params{
      .rows = static_cast<uint32_t>(row_count(logits)),
      .experts = attrs.experts,
      .choices = attrs.choices,
      .always = static_cast<uint32_t>(logits.back()) - attrs.experts,
      .groups = attrs.groups,
      .kept_groups = attrs.kept_groups,
      .scale = attrs.scale,
      .least_sum = attrs.least_sum,
  };
  Dispatch d = make_dispatch(node, context.caps.subgroup()
                                       ? KernelId::expert_route_row__f32_none_f32_subgroup
                                       : KernelId::expert_route_row__f32_none_f32);
  const bool biased = node.inputs[1] != kNoTensor;
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[biased ? 1 : 0], Access::kRead},
                {node.outputs[0], Access::kWrite}};
  d.set_constants(ExpertRouteConstants{
      .local_size = row_local_size(context.caps, params.experts, params.choices / 4 + 4),
      .sigmoid = attrs.scores == ExpertRouteAttrs::Scores::kSigmoid,
      .biased = biased,
      .normalize = attrs.normalize});
  d.set_push(params);
  set_row_groups(context, d, params.rows, 1);
  const double experts = static_cast<double>(params.rows) * params.experts;
  d.flops = 40.0 * experts;
  d.bytes = 8.0 * experts + 8.0 * params.rows * (params.choices + params.always);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
