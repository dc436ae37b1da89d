// needs: kLocalSize, float_bits.glsl, reduce.glsl, float row_value(uint column).
// What layer normalization takes from a row of values, which row_value gives. It is the corrected
// two-pass algorithm (Chan, Golub and LeVeque, 1983): what is left of the mean after the first pass
// also leaves the variance. Holds barriers: call it in uniform control flow only.
struct RowMoments {
  float rough_mean, rest;  // their sum is the mean
  float scale;             // 1 / sqrt(variance + epsilon)
};

RowMoments row_moments(uint width, float epsilon) {
  const float count = float(width);
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < width; i += kLocalSize) sum += row_value(i);
  const float rough_mean = workgroup_sum(sum) / count;
  float differences = 0.0;
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < width; i += kLocalSize) {
    const float difference = row_value(i) - rough_mean;
    differences += difference;
    squares += difference * difference;
  }
  const float rest = workgroup_sum(differences) / count;
  const float variance = at_least(workgroup_sum(squares) / count - rest * rest, 0.0);
  return RowMoments(rough_mean, rest, inversesqrt(variance + epsilon));
}

float normed(float value, RowMoments m) { return ((value - m.rough_mean) - m.rest) * m.scale; }
