// needs: float_bits.glsl, MatmulParams p, kRows, kNorm, kAlignedA, c[], load_row, load_row_at,
// load_a4's VKF_INT64. A norm before a product of a few rows: kNorm says which. Its gain (and bias)
// are in C's binding, as rms_norm and layer_norm have them. Lanes of a slice read the same part of
// a row, so that nothing is exchanged but the sums of slices (find_moments, the shader's).
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
  float rest;  // of the mean, below its rounding
  float scale;
};

RowNorm norm[kRows];

// Of each row: the sum of x - norm.mean and that of its squares.
vec2 moments[kRows];

// Adds a slice of all rows, so that their loads are under way together.
void add_moments(uint a_row[kRows], uint slice, uint slices) {
  const uint whole = p.k & ~3u;
  for (uint k = 4u * slice; k < whole; k += 4u * slices) {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
      const vec4 x = load_row(a_row[i], k) - norm[i].mean;
      moments[i] += vec2((x.x + x.y) + (x.z + x.w), dot(x, x));
    }
  }
  for (uint k = whole + slice; k < p.k; k += slices) {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
      const float x = load_row_at(a_row[i], k) - norm[i].mean;
      moments[i] += vec2(x, x * x);
    }
  }
}

// moments[] of whole rows.
void find_moments(uint a_row[kRows]);

// norm[] of the rows that begin at a_row.
void find_norms(uint a_row[kRows]) {
  [[unroll]] for (uint i = 0u; i < kRows; ++i) norm[i] = RowNorm(0.0, 0.0, 1.0);
  if (kNorm == kNormNone) return;
  find_moments(a_row);
  if (kNorm == kNormLayer) {
    // The corrected two-pass algorithm (Chan, Golub and LeVeque, 1983), as layer_norm.comp.
    [[unroll]] for (uint i = 0u; i < kRows; ++i) norm[i].mean = moments[i].x / float(p.k);
    find_moments(a_row);
  }
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    vec2 mean = moments[i] / float(p.k);
    if (kNorm == kNormLayer) {
      norm[i].rest = mean.x;
      mean.y = at_least(mean.y - norm[i].rest * norm[i].rest, 0.0);
    }
    norm[i].scale = inversesqrt(mean.y + p.norm_epsilon);
  }
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

vec4 normed(vec4 x, RowNorm of, NormTerms terms) {
  if (kNorm == kNormRms) x = x * of.scale * terms.gain;
  if (kNorm == kNormLayer) { x = ((x - of.mean) - of.rest) * of.scale * terms.gain + terms.bias; }
  return x;
}
float normed_at(uint k, float x, RowNorm of) {
  if (kNorm == kNormRms) x = x * of.scale * c[k];
  if (kNorm == kNormLayer) { x = ((x - of.mean) - of.rest) * of.scale * c[k] + c[p.k + k]; }
  return x;
}
#if VKF_BLOCKS
// Zeros from step K on, as load_row_inside.
vec4 normed_inside(uint k, vec4 x, RowNorm of, NormTerms terms) {
  if (kNorm != kNormNone) {
    x = mix(vec4(0.0), normed(x, of, terms), lessThan(k + uvec4(0u, 1u, 2u, 3u), uvec4(p.k)));
  }
  return x;
}
#endif
#endif
