// needs: nothing.
// What a half cannot hold: beyond 65,504, or NaN. Kernels of matrix units put zeros in the place of
// such factors, and multiply these in f32.
bvec4 beyond_f16(vec4 v) {
  return greaterThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x477fe000u));
}
bool beyond_f16(float v) { return (floatBitsToUint(v) & 0x7fffffffu) > 0x477fe000u; }
