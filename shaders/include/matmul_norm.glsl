// needs: float_bits.glsl, MatmulParams p, kRows, kNorm, kAlignedA, c[], load_row, load_row_at, load_a4's VKF_INT64.
// A norm in front of a product of a few rows: kNorm says which, its gain (and bias) lie in C's
// binding, as rms_norm and layer_norm have them. Lanes of a slice read the same part of a row, so that
// nothing is exchanged but the sums of slices (moments_of_all, the shader's).
#ifndef VKF_MATMUL_NORM_GLSL
#define VKF_MATMUL_NORM_GLSL
#if VKF_INT64
layout(binding = 2) readonly buffer C4 { u64vec2 c4[]; };
vec4 load_c4(uint i) {
  const u64vec2 v = c4[i];
  return vec4(unpack_pair(v.x), unpack_pair(v.y));
}
#else
layout(binding = 2) readonly buffer C4 { vec4 c4[]; };
vec4 load_c4(uint i) { return c4[i]; }
#endif

struct RowNorm {
  float mean;
  float rest;  // of the mean, behind its rounding
  float scale;
};

// Sums of x - centre and of its squares, over a slice of a row.
vec2 moments(uint row, float centre, uint slice, uint slices) {
  vec2 sums = vec2(0.0);
  const uint whole = p.k & ~3u;
  for (uint k = 4u * slice; k < whole; k += 4u * slices) {
    const vec4 x = load_row(row, k) - centre;
    sums += vec2((x.x + x.y) + (x.z + x.w), dot(x, x));
  }
  for (uint k = whole + slice; k < p.k; k += slices) {
    const float x = load_row_at(row, k) - centre;
    sums += vec2(x, x * x);
  }
  return sums;
}

vec2 moments_of_all(uint row, float centre);

RowNorm norm_of(uint row) {
  RowNorm norm = RowNorm(0.0, 0.0, 1.0);
  if (kNorm != kNormNone) {
    vec2 sums = moments_of_all(row, 0.0) / float(p.k);
    if (kNorm == kNormLayer) {
      // The corrected two-pass algorithm (Chan, Golub and LeVeque, 1983), as layer_norm.comp.
      norm.mean = sums.x;
      sums = moments_of_all(row, norm.mean) / float(p.k);
      norm.rest = sums.x;
      sums.y = at_least(sums.y - norm.rest * norm.rest, 0.0);
    }
    norm.scale = inversesqrt(sums.y + p.norm_epsilon);
  }
  return norm;
}

// Gains and biases of four steps of K.
struct NormTerms {
  vec4 gain;
  vec4 bias;
};
NormTerms load_norm(uint k) {
  NormTerms terms = NormTerms(vec4(1.0), vec4(0.0));
  if (kNorm != kNormNone && kAlignedA != 0u) {
    terms.gain = load_c4(k >> 2);
    if (kNorm == kNormLayer) terms.bias = load_c4((p.k + k) >> 2);
  } else if (kNorm != kNormNone) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      const uint i = min(k + e, p.k - 1u);
      terms.gain[e] = c[i];
      if (kNorm == kNormLayer) terms.bias[e] = c[p.k + i];
    }
  }
  return terms;
}

vec4 normed(vec4 x, RowNorm norm, NormTerms terms) {
  if (kNorm == kNormRms) x = x * norm.scale * terms.gain;
  if (kNorm == kNormLayer) {
    x = ((x - norm.mean) - norm.rest) * norm.scale * terms.gain + terms.bias;
  }
  return x;
}
float normed_at(uint k, float x, RowNorm norm) {
  if (kNorm == kNormRms) x = x * norm.scale * c[k];
  if (kNorm == kNormLayer) {
    x = ((x - norm.mean) - norm.rest) * norm.scale * c[k] + c[p.k + k];
  }
  return x;
}
#if VKF_BLOCKS
// Zeros from step K on, as load_row_inside.
vec4 normed_inside(uint k, vec4 x, RowNorm norm, NormTerms terms) {
  if (kNorm != kNormNone) {
    x = mix(vec4(0.0), normed(x, norm, terms), lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(p.k)));
  }
  return x;
}
#endif
#endif
