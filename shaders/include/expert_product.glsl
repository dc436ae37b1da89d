// needs: float_bits.glsl; MatmulParams given, p; ExpertParams e; finish, apply_activation,
// epilogue. What makes a product of matrices the product of one expert: where its panels lie, and
// its gates. A workgroup's columns lie in one panel.
#ifndef VKF_EXPERT_PRODUCT_GLSL
#define VKF_EXPERT_PRODUCT_GLSL

// Makes p the product of the panel that holds column `column` of an expert, columns counted from
// the panel's first. False where the binding does not hold the panel.
bool take_panel(uint expert, uint column) {
  const uint in_expert = column / kPanelColumns;
  const uint panel = expert * e.panels + in_expert - e.first_panel;
  if (in_expert >= e.panels || panel >= e.held_panels) return false;
  const uint first = in_expert * kPanelColumns;
  p = given;
  p.n -= first;
  p.b_offset = panel * p.b_panel_stride;
  if (p.bias_offset != kMatmulNone) p.bias_offset += panel * kPanelColumns;
  p.y_offset += (epilogue() & kActivationGate) != 0u ? first / 2u : first;
  return true;
}

// What follows the sums of four neighboring columns. With a limit, of pairs:
// act(min(gate, limit)) (1 + clamp(other, limit)) (OpenAI, 2025, gpt-oss).
vec4 finish_expert(vec4 sum, vec4 bias) {
  if (e.gate_limit == 0.0) return finish(sum, bias, vec4(0.0));
  const vec4 x = p.alpha * sum + bias;
  const vec2 gate = vec2(at_most(x.x, e.gate_limit), at_most(x.z, e.gate_limit));
  const vec2 other =
      vec2(between(x.y, -e.gate_limit, e.gate_limit), between(x.w, -e.gate_limit, e.gate_limit)) +
      1.0;
  vec2 v = gate;
  for (uint i = 0u; i < 2u; ++i)
    v[i] = apply_activation(gate[i], epilogue() & (kActivationGate - 1u));
  return vec4(v * other, 0.0, 0.0);
}
#endif
