// needs: MatmulParams p, kActivation, b[], c[], y[]; with VKF_TABLES kTerms (includes
//        matmul_terms.glsl).
// What follows the sum of one element, or of an element of the gate and one of the up projection.
// It is alpha, bias, activation and addend, and the store. Elements outside Y are omitted.
#ifndef VKF_MATMUL_FINISH_GLSL
#define VKF_MATMUL_FINISH_GLSL
#include "matmul_terms.glsl"

float bias_at(uint column) {
  float bias = 0.0;
  if (has_bias()) bias = b[p.bias_offset + column];
  return bias;
}

void finish_pair(uint row, uint column, float gate, float x) {
  if (row >= p.m || column >= p.n) return;
  const float bias_gate = bias_at(column), bias = bias_at(column + 1u);
  y[p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column / 2u] =
      apply_activation(p.alpha * gate + bias_gate, epilogue() & (kActivationGate - 1u)) *
      (p.alpha * x + bias);
}

void finish(uint row, uint column, float sum) {
  if (row >= p.m || column >= p.n) return;
  const uint kind = epilogue();
  float x = p.alpha * sum;
  if (has_bias()) x += bias_at(column);
  float addend = 0.0;
  if (has_addend()) {
    addend = p.beta *
             c[p.c_offset + gl_WorkGroupID.z * p.c_batch_stride + row * p.c_row_stride + column];
  }
  const bool after = p.c_after != 0u;
  float v = apply_activation(mix(x + addend, x, after), kind);
  v = mix(v, v + addend, after);
  y[p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column] = v;
}
#endif
