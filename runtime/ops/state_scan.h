// state_scan: a matrix per head that every token fades and adds to, in time linear in the tokens.
//
//   S[t] = decay[t] S[t-1] + k[t] u[t]',  y[t] = S[t]' q[t]
//   selective (Mamba-2; Dao and Gu, 2024): dt = clamp(softplus(a[t] + bias), limits),
//     decay = exp(-exp(log A) dt), u = dt v[t], y is added skip v[t]
//   delta (gated delta rule; Yang et al., 2024): decay = exp(-exp(log A) softplus(a[t] + bias)),
//     u = sigmoid(b[t]) (v[t] - (decay S[t-1])' k[t])
//
//   x (B, T, W) or in a step (slots, W), rates (3, H): log A, bias, skip, of
//   the delta rule (2, H) -> y as many rows of H Ev
//
// Columns of x hold q and k (Hk, E), v (H, Ev), a (H) and of the delta rule b (H). H / Hk heads
// share one of q and k. With norm_epsilon q and k are divided by sqrt(|.|^2 + norm_epsilon).
//
// A generation keeps S: states (R, L, H, E, Ev), of whose L lines a row writes the one of its
// position (ops/parent_lines.h). Masked tokens are zeros of x, which causal_conv sees to.
#pragma once

#include "ops/parent_lines.h"

namespace vkformer {

// E at most, of which a workgroup stages one token.
inline constexpr uint32_t kMostStateWidth = 1024;

struct StateScanAttrs {
  enum class Rule : uint8_t { kSelective, kDelta } rule = Rule::kSelective;
  uint32_t heads = 1;        // H
  uint32_t key_heads = 1;    // Hk
  uint32_t width = 1;        // E, of q and k
  uint32_t value_width = 1;  // Ev
  uint32_t q_offset = 0;     // columns of x
  uint32_t k_offset = 0;
  uint32_t v_offset = 0;
  uint32_t a_offset = 0;
  uint32_t b_offset = 0;
  float q_scale = 1.0f;
  float norm_epsilon = 0.0f;  // 0: q and k as they are
  float least_rate = 0.0f;    // limits of dt
  float most_rate = 3.4e38f;
  uint32_t beams = 1;  // rows of an item in `states`; a prompt's only
  uint32_t run = 1;    // most slots of one row in a step
};

struct StateScanInputs {
  TensorId x = kNoTensor;      // (B, T, W) or (slots, W)
  TensorId rates = kNoTensor;  // (3, H), of the delta rule (2, H)
  StateTensors carried = {};
};

// The output's description, or why the inputs do not fit. The inputs are x (B, T, W) or (slots, W),
// rates (3, H) or (2, H), states (R, L, H, E, Ev) or null.
Result<TensorDesc> check_state_scan(const TensorDesc& x, const TensorDesc& rates,
                                    const TensorDesc* states, const StateScanAttrs& attrs);

// Adds the node to the graph and returns y. In a step's graph x has a row for every slot; with
// states in another graph it is a prompt.
Result<TensorId> add_state_scan(Graph& graph, const StateScanInputs& inputs,
                                const StateScanAttrs& attrs);

Status lower_state_scan(LowerContext& context, const Node& node);

}  // namespace vkformer
