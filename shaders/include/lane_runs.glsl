// needs: kRun (1, 4 or 8), VKF_INT64, storage blocks with q[] and kv[] as bindings 0 and 1.
// Runs of neighboring elements in one load. Software devices pay for a load by the lane and
// component, not by the byte. Two floats in a 64-bit word come for the price of one.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(binding = 0) readonly buffer QOctets { u64vec4 q_octets[]; };
layout(binding = 1) readonly buffer KvOctets { u64vec4 kv_octets[]; };
layout(binding = 0) readonly buffer QQuads { vec4 q_quads[]; };
layout(binding = 1) readonly buffer KvQuads { vec4 kv_quads[]; };

float loaded[kRun];

void take_quad(vec4 quad) {
  [[unroll]] for (uint i = 0u; i < 4u; ++i) loaded[min(i, kRun - 1u)] = quad[i];
}

void take_octet(u64vec4 octet) {
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const vec2 pair = uintBitsToFloat(unpackUint2x32(octet[i]));
    loaded[min(2u * i, kRun - 1u)] = pair.x;
    loaded[min(2u * i + 1u, kRun - 1u)] = pair.y;
  }
}

// loaded = kv[at ...]; at is a multiple of kRun.
void load_run(uint at) {
  if (kRun == 1u) {
    loaded[0] = kv[at];
  } else if (kRun == 4u) {
    take_quad(kv_quads[at >> 2u]);
  } else {
    take_octet(kv_octets[at >> 3u]);
  }
}

// loaded = q[at ...].
void load_query_run(uint at) {
  if (kRun == 1u) {
    loaded[0] = q[at];
  } else if (kRun == 4u) {
    take_quad(q_quads[at >> 2u]);
  } else {
    take_octet(q_octets[at >> 3u]);
  }
}
