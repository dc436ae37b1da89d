// What ModernBERT's encoder and decoder read alike.
#pragma once

#include "checkpoint/json_config.h"
#include "model/blocks/stack.h"

namespace vkformer {

// Kinds of layers, in StackConfig::kinds and rotaries.
enum ModernBertLayer : uint8_t { kModernBertFull = 0, kModernBertSliding = 1 };

// Which modules have biases.
struct ModernBertBiases {
  bool attention = false;
  bool feed_forward = false;
  bool norm = false;
  bool decoder = true;
  bool dense = false;  // of heads
};
Result<ModernBertBiases> read_modernbert_biases(const JsonConfig& config);

// Sizes, activation and the order of norms.
Status read_modernbert_sizes(const JsonConfig& config, StackConfig& stack);
// stack.kind_of, from layer_types or the older global_attn_every_n_layers.
Status read_modernbert_layer_types(const JsonConfig& config, StackConfig& stack);
// stack.rotaries: parameters by layer type, or the older global_rope_theta and local_rope_theta
// beside one rope_scaling for both.
Status read_modernbert_rotaries(const JsonConfig& config, int64_t positions, StackConfig& stack);

}  // namespace vkformer
