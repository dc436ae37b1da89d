#include "ops/attention_weights.h"

#include <cmath>

#include "base/message.h"
#include "ops/attention_strategy.h"
#include "ops/row_kernel.h"
#include "ops/score_kinds.h"

namespace vkformer {
namespace {

// Attributes with every default filled in.
AttentionWeightsAttrs complete(AttentionWeightsAttrs a) {
  a.attention.value_width = 1;
  if (a.head_count == 0 && a.first_head < a.attention.heads) {
    a.head_count = a.attention.heads - a.first_head;
  }
  if (!a.attention.scale) {
    a.attention.scale =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.attention.head_width)));
  }
  return a;
}

}  // namespace

Result<TensorDesc> check_attention_weights(const TensorDesc& q, const TensorDesc& k,
                                           const TensorDesc* terms,
                                           const AttentionWeightsAttrs& given) {
  const AttentionWeightsAttrs chosen = complete(given);
  const AttentionAttrs& a = chosen.attention;
  VKF_CHECK(check_attention_numbers(OpId::k_attention_weights, a));
  VKF_CHECK(check_layout(OpId::k_attention_weights, q, "q", a.q,
                         std::array{a.batch, a.heads, a.queries, a.head_width}));
  VKF_CHECK(check_layout(OpId::k_attention_weights, k, "k", a.k,
                         std::array{a.batch, a.kv_heads, a.keys, a.head_width}));
  VKF_CHECK(check_relative(OpId::k_attention_weights, k, a));
  VKF_CHECK(check_terms(OpId::k_attention_weights, terms, a.terms,
                        std::array{a.batch, a.heads, a.queries, a.keys}));
  if (chosen.head_count < 1 || chosen.head_count > a.heads ||
      chosen.first_head > a.heads - chosen.head_count) {
    return op_error(OpId::k_attention_weights,
                    message({given.head_count, " heads from head ", given.first_head,
                             " on were asked for, but there are ", a.heads}));
  }
  const Shape shape = {a.batch, chosen.head_count, a.queries, a.keys};
  // Products of four sizes below 2^24 can leave 64 bits; the limit is far below.
  const double elements = static_cast<double>(a.batch) * chosen.head_count * a.queries * a.keys;
  if (elements > 4294967295.0) {
    return op_error(OpId::k_attention_weights,
                    message({"the weights would have shape ", shape_text(shape),
                             ", above the limit of 2^32 - 1 elements; choose fewer heads"}));
  }
  return TensorDesc{"attention_weights", DType::kF32, shape};
}

Result<TensorId> add_attention_weights(Graph& graph, const AttentionInputs& inputs,
                                       const AttentionWeightsAttrs& attrs) {
  const TensorDesc* terms = inputs.terms == kNoTensor ? nullptr : &graph.tensor(inputs.terms);
  VKF_ASSIGN(TensorDesc out, check_attention_weights(graph.tensor(inputs.q),
                                                     graph.tensor(inputs.kv), terms, attrs));
  const TensorId y = graph.add_tensor(std::move(out));
  AttentionWeightsAttrs chosen = complete(attrs);
  std::string text =
      "heads=" + std::to_string(chosen.first_head) + "+" + std::to_string(chosen.head_count);
  if (chosen.result == AttentionWeightsAttrs::Result::kScores) text += " scores";
  Node node = make_node<OpId::k_attention_weights>(std::move(chosen), std::move(text));
  node.inputs = {inputs.q, inputs.kv, inputs.terms};
  node.outputs = {y};
  graph.add_node(std::move(node));
  return y;
}

Status lower_attention_weights(LowerContext& context, const Node& node) {
  const AttentionWeightsAttrs& chosen = attrs_of<AttentionWeightsAttrs>(node);
  const AttentionAttrs& a = chosen.attention;
  const uint64_t rows = uint64_t{a.batch} * chosen.head_count * a.queries;
  const AttentionWeightsParams params{
      .q = a.q,
      .k = a.k,
      .relative = {a.relative.offset, a.relative.reach},
      .heads = a.heads,
      .heads_per_kv = a.heads / a.kv_heads,
      .first_head = chosen.first_head,
      .heads_out = chosen.head_count,
      .queries = a.queries,
      .keys = a.keys,
      .rows = static_cast<uint32_t>(rows),
      .scale = *a.scale,
      .inverse_temperature = 1.0f / a.temperature,
      .raw_scores = chosen.result == AttentionWeightsAttrs::Result::kScores ? 1u : 0u,
      .terms = a.terms};
  // Keys are longer work than the elements of other rows: a round for each element of a head.
  const uint32_t width = 4 * a.keys;
  const uint64_t products = 1 + (a.relative.kinds != 0 ? 1 : 0) +
                            ((a.relative.kinds & VKF_RELATIVE_QUERIES) != 0 ? 1 : 0);
  const uint64_t passes = products * a.head_width / 4 + 4;
  if (too_many_passes(context.caps, width, passes)) {
    return unsupported(
        message({"[attention_weights] There is no kernel for ", a.keys, " keys of width ",
                 a.head_width, " on a software device; use a shorter sequence"}));
  }
  Dispatch d = make_dispatch(node, context.caps.subgroup()
                                       ? KernelId::attention_weights_row__f32_f32_f32_subgroup
                                       : KernelId::attention_weights_row__f32_f32_f32);
  d.bindings = {{node.inputs[0], Access::kRead},
                {node.inputs[1], Access::kRead},
                {node.inputs[2] == kNoTensor ? node.inputs[1] : node.inputs[2], Access::kRead},
                {node.outputs[0], Access::kReadWrite}};
  d.set_push(params);
  d.set_constants(
      AttentionWeightsConstants{.local_size = row_local_size(context.caps, width, passes),
                                .width = a.head_width,
                                .softcap = softcap_bits(a.softcap),
                                .relative = a.relative.kinds & ~VKF_RELATIVE_VALUES,
                                .kinds = score_kinds(a.terms),
                                .quads = starts_in_quads(a)});
  set_row_groups(context, d, rows, 1);
  const double pairs = static_cast<double>(rows) * a.keys;
  d.flops = pairs * (2.0 * static_cast<double>(products) * a.head_width + 8.0);
  d.bytes = 4.0 * pairs * (static_cast<double>(products) * a.head_width + 5.0);
  context.plan.dispatches.push_back(std::move(d));
  return {};
}

}  // namespace vkformer
