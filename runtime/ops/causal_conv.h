// causal_conv: a short causal convolution of each channel by itself. It also has what a generation
// keeps of it (Mamba: Gu and Dao, 2023; gated short convolutions: LFM2, Liquid AI, 2025).
//
//   y[t] = act(bias + sum_k w[k] g[t - K + 1 + k]),  g = x;  with gates g = x * in,
//   and y[t] is multiplied by `out`
//   x (B, T, W) or in a step (slots, W), taps (K, C): w, with `bias` (K + 1, C): w, then bias
//     -> y as many rows, of W with the channels' columns replaced, or of C alone
//
// Tokens before the first one and masked ones count as zeros, and a masked token's row is zeros. A
// generation keeps the last K - 1 values of g. These are states (R, L, K - 1, C), of whose L lines
// a row writes the one of its position (ops/parent_lines.h).
#pragma once

#include "ops/activation.h"
#include "ops/parent_lines.h"

namespace vkformer {

// K at most: taps that an invocation of a step has in registers.
inline constexpr int64_t kMostConvTaps = 16;

struct CausalConvAttrs {
  uint32_t first = 0;                                 // column of x of the first channel
  ActivationKind activation = ActivationKind::kNone;  // act
  bool bias = false;                                  // the taps have a row of biases
  enum class Gates : uint8_t { kNo, kYes } gates = Gates::kNo;
  uint32_t in_gate = 0;   // column of the first channel's gate of inputs
  uint32_t out_gate = 0;  // the same of outputs
  // kAll: y has all columns of x, the channels' in their place; kChannels: the channels' alone.
  enum class Columns : uint8_t { kAll, kChannels } columns = Columns::kAll;
  uint32_t beams = 1;  // rows of an item in `states`; a prompt's only
};

struct CausalConvInputs {
  TensorId x = kNoTensor;     // (B, T, W) or (slots, W)
  TensorId taps = kNoTensor;  // (K, C) or with a bias (K + 1, C)
  TensorId mask = kNoTensor;  // (B, ceil(T/32)) or more words, U32, of a full pass; or none
  StateTensors carried = {};
};

// The output's description, or why the inputs do not fit. The inputs are x (B, T, W) or (slots, W),
// taps (K, C) or (K + 1, C), states (R, L, K - 1, C) or null.
Result<TensorDesc> check_causal_conv(const TensorDesc& x, const TensorDesc& taps,
                                     const TensorDesc* states, const CausalConvAttrs& attrs);

// Adds the node to the graph and returns y. In a step's graph x has a row for every slot; with
// states in another graph it is a prompt.
Result<TensorId> add_causal_conv(Graph& graph, const CausalConvInputs& inputs,
                                 const CausalConvAttrs& attrs);

Status lower_causal_conv(LowerContext& context, const Node& node);

}  // namespace vkformer
