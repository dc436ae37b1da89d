// needs: f16_range.glsl. It also needs what attention_units.comp has: kRows, kDepth, kKeys,
// kLocalSize, kQuads and the pitches, and the bindings of q and kv. Also q_tile, kv_tile and marks
// in shared memory. Fills tiles of halves there: queries, keys, values. Zeros stand
// for what is beyond f16.
f16vec4 narrowed(vec4 v, out bool wide) {
  const bvec4 beyond = beyond_f16(v);
  wide = any(beyond);
  return f16vec4(mix(v, vec4(0.0), beyond));
}

// Elements e ... e + 3 of the row at `base`, with zeros after its end.
vec4 q_elements(uint base, uint e) {
  vec4 v = vec4(0.0);
  if (kQuads != 0u) return e < kWidth ? q_quads[(base + e) >> 2u] : v;
  [[unroll]] for (uint n = 0u; n < 4u; ++n) {
    if (e + n < kWidth) v[n] = q[base + e + n];
  }
  return v;
}
vec4 kv_elements(uint base, uint e, uint width) {
  vec4 v = vec4(0.0);
  if (kQuads != 0u) return e < width ? kv_quads[(base + e) >> 2u] : v;
  [[unroll]] for (uint n = 0u; n < 4u; ++n) {
    if (e + n < width) v[n] = kv[base + e + n];
  }
  return v;
}

void load_queries(uint base, uint first) {
  for (uint t = gl_LocalInvocationID.x; t < kRows * (kDepth / 4u); t += kLocalSize) {
    const uint row = t / (kDepth / 4u), quad = t % (kDepth / 4u);
    vec4 v = vec4(0.0);
    if (first + row < p.queries) v = q_elements(base + (first + row) * p.q.row_stride, 4u * quad);
    bool wide;
    q_tile[row * kPitchQ + quad] = narrowed(v, wide);
    if (wide) atomicMax(marks.x, 1u);
  }
}

// Rows of the tile's keys, or of their values; whether one of these elements is beyond f16.
bool load_tile(HeadLayout rows, uint base, uint tile, uint width, uint padded) {
  bool any_wide = false;
  for (uint t = gl_LocalInvocationID.x; t < kKeys * (padded / 4u); t += kLocalSize) {
    const uint n = t / (padded / 4u), quad = t % (padded / 4u);
    const uint key = tile * kKeys + n;
    vec4 v = vec4(0.0);
    if (key < p.keys) v = kv_elements(base + key * rows.row_stride, 4u * quad, width);
    bool wide;
    kv_tile[n * kPitchKv + quad] = narrowed(v, wide);
    any_wide = any_wide || wide;
  }
  return any_wide;
}
