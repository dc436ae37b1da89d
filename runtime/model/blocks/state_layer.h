// Layers that carry states of fixed size from token to token instead of keys and values. There are
// three kinds. One is gated short convolutions (LFM2, Liquid AI, 2025). The others are the
// selective state spaces of Mamba-2 (Dao and Gu, 2024) and gated delta networks (Yang et al.,
// 2024).
//
// Weight rows that it asks for, under the layer's prefix:
//   mix.in      the projection, whose columns StateColumns lays out
//   mix.taps    table (K, C) of the convolution's taps, with `bias` (K + 1, C) and its biases
//   mix.rates   table (3, H): log A, bias, skip, of the delta rule (2, H); of short convolutions
//   none mix.norm    table of gains (G, H Ev / G), where there is a norm mix.out     (D, H Ev), of
//   short convolutions (D, D)
#pragma once

#include "ops/causal_conv.h"
#include "ops/gated_norm.h"
#include "ops/state_scan.h"

namespace vkformer {

struct LayerSite;
struct LinearAttrs;

struct StateSetup {
  enum class Kind : uint8_t { kNone, kShortConv, kSelective, kDelta } kind = Kind::kNone;
  int64_t taps = 0;                                   // K
  bool bias = false;                                  // of the convolution
  bool in_bias = false;                               // of mix.in
  bool out_bias = false;                              // of mix.out
  int64_t heads = 0;                                  // H
  int64_t key_heads = 0;                              // Hk, of groups that share keys and queries
  int64_t width = 0;                                  // E, of keys and queries
  int64_t value_width = 0;                            // Ev
  ActivationKind activation = ActivationKind::kSilu;  // after the convolution
  GatedNormAttrs::Order gate = GatedNormAttrs::Order::kGateOnly;
  int64_t norm_groups = 1;     // G
  float norm_epsilon = 1e-6f;  // of that norm
  float least_rate = 0.0f;     // limits of dt
  float most_rate = 3.4e38f;
  std::vector<uint8_t> layers;  // whether a layer has such a state; empty: no layer
  // Layers with a state attend, too, and add up both (Falcon-H1).
  enum class Attends : uint8_t { kNo, kYes } attends = Attends::kNo;

  bool of_layer(int64_t layer) const {
    const auto i = static_cast<size_t>(layer);
    return i < layers.size() && layers[i] != 0;
  }
  bool any() const { return kind != Kind::kNone; }
  bool replaces_attention(int64_t layer) const {
    return of_layer(layer) && attends == Attends::kNo;
  }
  int64_t keys() const { return key_heads * width; }
  int64_t values() const { return heads * value_width; }
};

// Columns of mix.in for a stack of width D. A short convolution has [in gate | out gate | x]. A
// selective state has [gate | v | keys | queries | rates]. The delta rule has [queries | keys | v |
// gate | strengths | rates].
struct StateColumns {
  int64_t width = 0;                // of all
  int64_t first = 0, channels = 0;  // that go through the convolution
  int64_t q = 0, k = 0, v = 0, gate = 0, rates = 0, strengths = 0;
};
StateColumns state_columns(const StateSetup& setup, int64_t stack_width);

// L lines of a row's states in a generation of that shape.
int64_t state_lines(const LayerSite& site);

// h (B, T, D) or (slots, D) -> what mix.out reads. In a generation states are self_state.l and
// self_state.l.conv.
Result<TensorId> add_states(const LayerSite& site, TensorId h);

// The same and the output projection: out.alpha times it + out.residual.
Result<TensorId> add_state_layer(const LayerSite& site, TensorId h, const LinearAttrs& out);

}  // namespace vkformer
