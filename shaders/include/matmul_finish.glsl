// needs: MatmulParams p, kActivation, b[], c[], y[] (includes activation.glsl).
// What follows the sum of one element, or of a gate and what it lets through: alpha, bias,
// activation and addend, and the store. Elements outside Y are left out.
#ifndef VKF_MATMUL_FINISH_GLSL
#define VKF_MATMUL_FINISH_GLSL
#include "activation.glsl"

uint epilogue() { return kActivation == 255u ? p.activation : kActivation; }
bool has_gate() { return (epilogue() & kActivationGate) != 0u; }

void finish_pair(uint row, uint column, float gate, float x) {
  if (row >= p.m || column >= p.n) return;
  float bias_gate = 0.0, bias = 0.0;
  if (p.bias_offset != kMatmulNone) {
    bias_gate = b[p.bias_offset + column];
    bias = b[p.bias_offset + column + 1u];
  }
  y[p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column / 2u] =
      apply_activation(p.alpha * gate + bias_gate, epilogue() & (kActivationGate - 1u)) *
      (p.alpha * x + bias);
}

void finish(uint row, uint column, float sum) {
  if (row >= p.m || column >= p.n) return;
  const uint kind = epilogue();
  float x = p.alpha * sum;
  if (p.bias_offset != kMatmulNone) x += b[p.bias_offset + column];
  float addend = 0.0;
  if (p.c_offset != kMatmulNone) {
    addend = p.beta * c[p.c_offset + gl_WorkGroupID.z * p.c_batch_stride + row * p.c_row_stride +
                        column];
  }
  const float v = p.c_after == 0u ? apply_activation(x + addend, kind)
                                  : apply_activation(x, kind) + addend;
  y[p.y_offset + gl_WorkGroupID.z * p.y_batch_stride + row * p.y_row_stride + column] = v;
}
#endif
