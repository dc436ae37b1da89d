// Attention of one layer of a stack, in full passes, prompts and steps: blocks/stack.cpp's other
// half.
#pragma once

#include "model/blocks/stack.h"

namespace vkformer {

// One layer of one pass.
struct LayerSite {
  ModelBuilder& b;
  const StackConfig& c;
  const StackRun& run;
  int64_t layer = 0;

  std::string rows() const { return c.layer_rows(layer); }
  std::string number() const { return std::to_string(layer); }
};

// [q | k | v] of h (..., D), turned by rotary positions, and in a prompt or a step written into the
// cache -> (..., (H + 2 Hkv) E).
Result<TensorId> add_projection(const LayerSite& site, TensorId h);
// Keys and values of the encoder's output (B, S, 2 Hkv E); in a prompt also the output cross_kv.l.
Result<TensorId> add_cross_projection(const LayerSite& site);

// Self-attention and cross-attention of h (..., D) with their output projection -> (..., D).
Result<TensorId> add_self_attention(const LayerSite& site, TensorId h, LinearAttrs out);
Result<TensorId> add_cross_attention(const LayerSite& site, TensorId h, LinearAttrs out);

// Slopes, or a reach and the biases by distance, as kernels read them; empty where there are none.
std::vector<uint32_t> distance_words(const StackConfig& stack);

}  // namespace vkformer
