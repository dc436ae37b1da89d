// needs: MatmulParams p, kActivation, b[], c[], y[], y4[] unless VKF_LITERAL; with VKF_TABLES
// kTerms
//        (includes matmul_terms.glsl).
// What follows the sums of four neighboring columns of a row: alpha, bias, activation, gate and
// addend, and the store. One element at a time: matmul_finish.glsl.
#ifndef VKF_MATMUL_FINISH_QUAD_GLSL
#define VKF_MATMUL_FINISH_QUAD_GLSL
#include "matmul_terms.glsl"

vec4 load_bias(uint column) {
  vec4 bias = vec4(0.0);
  if (has_bias()) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      if (column + e < p.n) bias[e] = b[p.bias_offset + column + e];
    }
  }
  return bias;
}

// beta C, or zeros.
vec4 load_addend(uint row, uint column) {
  vec4 addend = vec4(0.0);
  if (has_addend()) {
    const uint at = p.c_offset + gl_WorkGroupID.z * p.c_batch_stride + row * p.c_row_stride;
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      if (column + e < p.n) addend[e] = p.beta * c[at + column + e];
    }
  }
  return addend;
}

// Of a gated product two results, in x and y.
vec4 finish(vec4 sum, vec4 bias, vec4 addend) {
  const uint kind = epilogue() & (kActivationGate - 1u);
  const vec4 x = p.alpha * sum + bias + (p.c_after == 0u ? addend : vec4(0.0));
  // A loop, and not four calls: every call is inlined, and the activations are most of the SPIR-V.
  vec4 v = x;
  for (uint e = 0u; e < 4u; ++e) v[e] = apply_activation(x[e], kind);
  if (has_gate()) return vec4(v.xz * x.yw, 0.0, 0.0);
  return p.c_after == 0u ? v : v + addend;
}

void store_quad(uint row, uint column, vec4 v) {
  const uint first = p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride;
  if (has_gate()) {
    [[unroll]] for (uint e = 0u; e < 2u; ++e) {
      if (column + 2u * e < p.n) y[first + column / 2u + e] = v[e];
    }
    return;
  }
  const uint at = first + column;
#if !VKF_LITERAL  // there a store of four is four stores
  if ((at & 3u) == 0u && column + 3u < p.n) {
    y4[at >> 2] = v;
    return;
  }
#endif
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    if (column + e < p.n) y[at + e] = v[e];
  }
}
#endif
