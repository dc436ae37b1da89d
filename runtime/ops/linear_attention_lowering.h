// How linear attention becomes dispatches: sizes of chunks and of scratch memory. Internal to
// linear_attention; linear_attention.h is the operator.
#pragma once

#include <variant>

#include "ops/linear_attention.h"

namespace vkformer {

// What a node of operator linear_attention carries.
using LinearAttentionNodeAttrs = std::variant<LinearAttentionAttrs, LinearStepAttrs>;

struct LinearSizes {
  uint32_t map_features = 1;  // m of favor, E of elu
  uint32_t features = 1;      // M: one more with kernel_eps
  uint32_t state_words = 1;   // W
  uint32_t chunk = 1;         // keys of a chunk
  uint32_t chunks = 1;
  uint64_t feature_words = 0;  // of one head of one item: (T, M) and (S, M + 1)
  uint64_t states_words = 0;   // of one head of one item: (chunks, W)
};

// Chunks depend on the features alone, so that the length of a batch changes no row's sums.
LinearSizes linear_sizes(const LinearAttentionAttrs& attrs, int64_t omega_rows);
// Scratch words that one head of one item needs in one buffer.
uint64_t linear_unit_words(const LinearSizes& sizes);

// Push constants and switches that full passes and steps of the features have alike.
uint32_t linear_map(const LinearFeatureAttrs& features);
bool linear_fades(const LinearFeatureAttrs& features);
bool linear_has_one(const LinearFeatureAttrs& features);
uint32_t linear_feature_lanes(const DeviceCaps& caps, uint32_t features, uint32_t head_width);
// Features that an invocation projects at once, which saves loads.
uint32_t linear_feature_spread(const LinearFeatureAttrs& attrs, uint32_t features, uint32_t lanes);

Status lower_linear_attention_step(LowerContext& context, const Node& node,
                                   const LinearStepAttrs& attrs);

}  // namespace vkformer
