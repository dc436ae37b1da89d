#include "base/check.h"
#include "operators/attention_call.h"
#include "operators/operator_adaptors.h"

namespace vkformer {
namespace {

// Where the caller asks how many keys the kernel visits for each query, the kernel counts them.
Status add_counts(const OperatorArguments& arguments, AttentionCall& call) {
  VKF_ASSIGN(const bool counts, arguments.attributes().get_bool_or("count_keys", false));
  if (!counts) return {};
  AttentionAttrs attrs = call.attrs;
  attrs.report = AttentionAttrs::Report::kVisitedKeys;
  VKF_ASSIGN(const TensorId visited, add_attention(call.op.graph, call.inputs, attrs));
  call.op.name_output(visited, "visited");
  return {};
}

}  // namespace

// attention (Matrix product and attention)
// attributes: `scale` (1/sqrt(E)), `temperature` (1), `softcap` (none), masks, `alibi_slopes`,
//             `count_keys` (false)
// inputs:     Q (B, H, T, E), K (B, Hkv, S, E), V (B, Hkv, S, Ev); optional key_mask, mask, bias,
//             global, documents, prefix, block_map, relative_keys, relative_queries,
//             relative_products, relative_values, content_bias, position_bias, sink_scores (H)
// outputs:    output (B, H, T, Ev); visited (B, H, T) where asked for
// computes:   softmax((cap(scale · (Q Kᵀ + relative)) + alibi + bias) / temperature) V, one pass;
//             query head h uses key head h · Hkv / H
Result<PreparedOperator> prepare_attention(const OperatorArguments& arguments) {
  VKF_ASSIGN(AttentionCall call, prepare_attention_call(arguments));
  VKF_CHECK(add_attention_output(call));
  VKF_CHECK(add_counts(arguments, call));
  return std::move(call.op);
}

// sliding_window_attention (Matrix product and attention)
// attributes: the same
// inputs:     the same
// outputs:    output
// computes:   `attention` with `window_left`, `window_right`
Result<PreparedOperator> prepare_sliding_window_attention(const OperatorArguments& arguments) {
  return prepare_attention(arguments);
}

}  // namespace vkformer
