// needs: kLstm (specialization constant: 0 GRU, 1 LSTM; includes activation.glsl).
// One unit of a recurrent cell, from what its gates get of the input and of the state, biases
// included. GRU: gates r, z, n (Cho et al. 2014). The reset gate is after the product as cuDNN and
// PyTorch have it. LSTM has gates i, f, g, o (Hochreiter and Schmidhuber 1997; Gers et al. 2000).
#include "activation.glsl"

// The unit's new state h in x, and in y what it carries: h itself, or the LSTM's cell. Loops, and
// not calls side by side: every call is inlined, and the activations are most of the SPIR-V.
vec2 cell_update(vec4 from_input, vec4 from_state, float carry) {
  vec4 open = from_input + from_state;
  for (uint e = 0u; e < 4u; ++e) open[e] = apply_activation(open[e], kActivationSigmoid);
  // The value that the cell may take up, then what an LSTM shows of its cell.
  float value = from_input.z + (kLstm != 0u ? 1.0 : open.x) * from_state.z;
  float cell = 0.0;
  for (uint i = 0u; i <= kLstm; ++i) {
    if (i == 1u) value = cell = open.y * carry + open.x * value;
    value = apply_activation(value, kActivationTanh);
  }
  if (kLstm != 0u) return vec2(open.w * value, cell);
  const float h = (1.0 - open.y) * value + open.y * carry;
  return vec2(h, h);
}
