#include "model/blocks/multi_head_attention.h"

#include "ops/attention_weights.h"

namespace vkformer {
namespace {

Result<TensorId> project(Graph& graph, TensorId x, const AttentionProjection& projection) {
  if (projection.packed.tensor != kNoTensor) return add_linear(graph, x, projection.packed, {});
  return add_matmul(graph, x, projection.weight, projection.bias, {.trans_b = true});
}

// Where q, k and v lie in the projection: side by side per token, or per head of a token.
HeadLayout part_layout(const MultiHeadAttentionBlock& b, uint32_t part) {
  const uint32_t width = b.heads * b.head_width;
  if (b.projection == MultiHeadAttentionBlock::Projection::kMerged) {
    return merged_rows(b.tokens, 3 * width, part * width, b.head_width);
  }
  return {part * b.head_width, b.tokens * 3 * width, 3 * b.head_width, 3 * width};
}

AttentionAttrs attention_attrs(const MultiHeadAttentionBlock& b) {
  AttentionAttrs a;
  a.batch = b.batch;
  a.heads = b.heads;
  a.kv_heads = b.heads;
  a.queries = b.tokens;
  a.keys = b.tokens;
  a.head_width = b.head_width;
  a.value_width = b.head_width;
  a.q = part_layout(b, 0);
  a.k = part_layout(b, 1);
  a.v = part_layout(b, 2);
  a.scale = b.scale;
  a.terms = b.terms_params;
  return a;
}

}  // namespace

Result<MultiHeadAttentionTensors> add_multi_head_attention(Graph& graph, TensorId x,
                                                           const MultiHeadAttentionBlock& block) {
  if (!block.qkv.present()) {
    return invalid_argument("[multi_head_attention] has no projection weight; give qkv");
  }
  VKF_ASSIGN(const TensorId qkv, project(graph, x, block.qkv));
  const AttentionInputs inputs{.q = qkv, .kv = qkv, .terms = block.terms};
  const AttentionAttrs attrs = attention_attrs(block);
  MultiHeadAttentionTensors out;
  if (block.weights == MultiHeadAttentionBlock::Weights::kKeep) {
    AttentionWeightsAttrs weights;
    weights.attention = attrs;
    VKF_ASSIGN(out.weights, add_attention_weights(graph, inputs, weights));
  }
  VKF_ASSIGN(out.output, add_attention(graph, inputs, attrs));
  if (block.output.present()) {
    VKF_ASSIGN(out.output, project(graph, out.output, block.output));
  }
  return out;
}

}  // namespace vkformer
