// Attention of one layer of a stack, in full passes, prompts and steps: blocks/stack.cpp's other
// half.
#pragma once

#include "model/blocks/stack.h"
#include "ops/attention_weights.h"

namespace vkformer {

// One layer of one pass.
struct LayerSite {
  ModelBuilder& b;
  const StackConfig& c;
  const StackRun& run;
  int64_t layer = 0;

  std::string rows() const { return c.layer_rows(layer); }
  std::string number() const { return std::to_string(layer) + c.cache_name; }
};

// A layer's projection (..., (H + 2 Hkv) E), or more with gates, and what attention reads of it.
struct LayerProjection {
  TensorId all = kNoTensor;
  TensorId qkv = kNoTensor;
};
// [q | k | v] of h (..., D), turned by rotary positions. In a prompt or a step they are written
// into the cache. In a step with rotary positions the result is the queries alone.
Result<LayerProjection> add_projection(const LayerSite& site, TensorId h);
// In a prompt what of h goes into the cache, alone.
Status add_cached(const LayerSite& site, TensorId h);
// Keys and values of the encoder's output (B, S, 2 Hkv E); in a prompt also the output cross_kv.l.
Result<TensorId> add_cross_projection(const LayerSite& site);

// Self-attention and cross-attention of h (..., D) with their output projection -> (..., D).
Result<TensorId> add_self_attention(const LayerSite& site, TensorId h, LinearAttrs out);
Result<TensorId> add_cross_attention(const LayerSite& site, TensorId h, LinearAttrs out);

// What StackRun::attend is made of.
// What of one attention is handed out; an empty name: nothing.
struct AttentionTap {
  std::string name;
  int64_t head = -1;  // -1: all
  AttentionWeightsAttrs::Result result = AttentionWeightsAttrs::Result::kProbabilities;
};
// Of a layer's attentions of that kind: "", "encoder_", "cross_".
AttentionTap tap_of(const LayerSite& site, const std::string& kind);
// The map that the tap wants (B, Hsel, T, S), not yet handed out.
Result<TensorId> add_map(const LayerSite& site, const AttentionInputs& inputs,
                         const AttentionAttrs& attrs, const AttentionTap& tap);
// Sizes, scale and heads of this layer over `keys` keys.
AttentionAttrs sizes_of(const LayerSite& site, int64_t keys);
// The same for its own qkv (B, T, (H + 2 Hkv) E), with the terms and the window of the layer.
AttentionAttrs own_attrs(const LayerSite& site);
// The fused attention, and where the tap wants it its map as an output -> (B, T, H E).
Result<TensorId> attend(const LayerSite& site, const AttentionInputs& inputs,
                        const AttentionAttrs& attrs, const AttentionTap& tap);

// Slopes, or a reach and the biases by distance, as kernels read them; empty where there are none.
std::vector<uint32_t> distance_words(const StackConfig& stack);

}  // namespace vkformer
