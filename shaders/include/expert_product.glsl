// needs: float_bits.glsl; MatmulParams given, p; ExpertParams e; finish, apply_activation,
// epilogue. What makes a product of matrices the product of one expert: where its panels lie, and
// its gates. A workgroup's columns lie in one panel.
#ifndef VKF_EXPERT_PRODUCT_GLSL
#define VKF_EXPERT_PRODUCT_GLSL

uint panel_of(uint expert, uint in_expert) { return expert * e.panels + in_expert - e.first_panel; }

// Of p what finishes the sums of a panel's columns, which are counted from the panel's first. The
// panel is number `in_expert` of its expert, and `panel` of those that the binding holds.
void take_results(uint in_expert, uint panel) {
  const uint first = in_expert * kPanelColumns;
  p.n = given.n - first;
  p.y_offset = given.y_offset + ((epilogue() & kActivationGate) != 0u ? first / 2u : first);
  if (given.bias_offset != kMatmulNone) {
    p.bias_offset = given.bias_offset + panel * kPanelColumns;
  }
}

// Makes p the product of the panel that holds column `column` of an expert. False where the binding
// does not hold the panel.
bool take_panel(uint expert, uint column) {
  const uint in_expert = column / kPanelColumns;
  const uint panel = panel_of(expert, in_expert);
  p = given;
  p.b_offset = panel * p.b_panel_stride;
  take_results(in_expert, panel);
  return in_expert < e.panels && panel < e.held_panels;
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
