// needs: float_bits.glsl; MatmulParams given, p; ExpertParams e; finish, apply_activation, epilogue.
// What makes a product of matrices the product of one expert: where its panels lie, and its gates. A
// workgroup's columns lie in one panel.
#ifndef VKF_EXPERT_PRODUCT_GLSL
#define VKF_EXPERT_PRODUCT_GLSL

// Makes p the product of the panel that holds column `column` of an expert, columns counted from the
// panel's first. False where the binding does not hold the panel.
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

// What follows the sums of four neighbouring columns. With a limit, of pairs:
// act(min(gate, limit)) (1 + clamp(other, limit)) (OpenAI, 2025, gpt-oss).
vec4 finish_expert(vec4 sum, vec4 bias) {
  if (e.gate_limit == 0.0) return finish(sum, bias, vec4(0.0));
  const vec4 x = p.alpha * sum + bias;
  vec4 y = vec4(0.0);
  for (uint i = 0u; i < 2u; ++i) {
    const float gate = at_most(x[2u * i], e.gate_limit);
    const float other = at_least(at_most(x[2u * i + 1u], e.gate_limit), -e.gate_limit);
    y[i] = apply_activation(gate, epilogue() & (kActivationGate - 1u)) * (1.0 + other);
  }
  return y;
}
#endif
