// state_scan: the recurrences of Mamba-2 (Dao and Gu, 2024) and of the gated delta rule (Yang et
// al., 2024), token by token. causal_conv: the short convolution before them. Needs: Array,
// activation.
#pragma once

#include "reference/activation.h"

namespace vkformer::reference {

struct CausalConvOptions {
  ActivationKind activation = ActivationKind::kIdentity;
  bool bias = false;                  // the last row of the taps
  int64_t first = 0;                  // column of x of the first channel
  bool gated = false;                 // inputs times in_gate, outputs times out_gate
  int64_t in_gate = 0, out_gate = 0;  // columns of the first channel's
  bool all_columns = true;            // y has all columns of x, not the channels' alone
  const Array* mask = nullptr;        // (B, T), 1 where a token counts
};

// x (B, T, W), taps (K, C), with `bias` (K + 1, C) -> (B, T, W or C).
Result<Array> causal_conv(const Array& x, const Array& taps, const CausalConvOptions& options);

struct StateScanOptions {
  bool delta = false;  // the delta rule, else the selective one
  int64_t heads = 1, key_heads = 1, width = 1, value_width = 1;
  int64_t q_offset = 0, k_offset = 0, v_offset = 0, a_offset = 0, b_offset = 0;
  double q_scale = 1.0;
  double norm_epsilon = 0.0;  // 0: q and k as they are
  double least_rate = 0.0, most_rate = 3.4e38;
};

// x (B, T, W), rates (3, H): log A, bias, skip, or of the delta rule (2, H) -> (B, T, H Ev).
Result<Array> state_scan(const Array& x, const Array& rates, const StateScanOptions& options);

}  // namespace vkformer::reference
