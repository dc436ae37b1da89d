#include "reference/inverse_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "reference/segment_means.h"

namespace vkformer::reference {
namespace {

// Matrices (rows, inner) and (inner, columns) of a stack; `b_transposed`: b is (columns, inner).
struct Sizes {
  int64_t count, rows, inner, columns;
};

Array multiply(const Array& a, const Array& b, Sizes s, bool b_transposed = false) {
  Array y = filled({s.count, s.rows, s.columns}, 0.0);
  for (int64_t n = 0; n < s.count; ++n) {
    for (int64_t i = 0; i < s.rows; ++i) {
      for (int64_t j = 0; j < s.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.inner; ++k) {
          const int64_t at = b_transposed ? j * s.inner + k : k * s.columns + j;
          sum += a[(n * s.rows + i) * s.inner + k] * b[n * s.inner * s.columns + at];
        }
        y[(n * s.rows + i) * s.columns + j] = sum;
      }
    }
  }
  return y;
}

// softmax(scale a b^T) over the rows.
Array weights(const Array& a, const Array& b, Sizes s, double scale) {
  Array y = multiply(a, b, s, true);
  for (int64_t row = 0; row < s.count * s.rows; ++row) {
    double* values = &y.data[static_cast<size_t>(row * s.columns)];
    double highest = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < s.columns; ++j) highest = std::max(highest, scale * values[j]);
    double total = 0;
    for (int64_t j = 0; j < s.columns; ++j) {
      values[j] = std::exp(scale * values[j] - highest);
      total += values[j];
    }
    for (int64_t j = 0; j < s.columns; ++j) values[j] /= total;
  }
  return y;
}

// diagonal I - x.
Array subtract_from(double diagonal, const Array& x) {
  Array y = x;
  const int64_t side = x.dim(1);
  for (int64_t i = 0; i < y.size(); ++i) {
    const bool on_diagonal = i / side % side == i % side;
    y[i] = (on_diagonal ? diagonal : 0.0) - x[i];
  }
  return y;
}

}  // namespace

Result<Array> inverse_start(const Array& a, InverseMaximum maximum) {
  VKF_CHECK(check_array(a, "inverse_start", "a"));
  if (a.rank() != 3 || a.dim(1) != a.dim(2)) {
    return invalid_argument(
        message({"[inverse_start] a has shape ", shape_text(a.shape), "; it must be (N, M, M)."}));
  }
  const int64_t side = a.dim(1);
  std::vector<double> highest(static_cast<size_t>(a.dim(0)),
                              -std::numeric_limits<double>::infinity());
  for (int64_t n = 0; n < a.dim(0); ++n) {
    for (int64_t j = 0; j < side; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < side; ++i) sum += a[(n * side + i) * side + j];
      double& most = highest[static_cast<size_t>(n)];
      if (std::isnan(sum) || sum > most) most = std::isnan(most) ? most : sum;
    }
  }
  if (maximum == InverseMaximum::kShared) {
    double all = -std::numeric_limits<double>::infinity();
    for (double value : highest) all = std::isnan(all) || value <= all ? all : value;
    std::fill(highest.begin(), highest.end(), all);
  }
  Array y = a;
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t n = i / (side * side);
    y[i] = a[(n * side + i % side) * side + i / side % side] / highest[static_cast<size_t>(n)];
  }
  return y;
}

Result<NystromReference> nystrom_attention(const NystromArrays& arrays, int64_t landmarks,
                                           InverseMaximum maximum) {
  const Array& q = arrays.q;
  VKF_ASSIGN(const Array q_means, segment_means(q, landmarks));
  VKF_ASSIGN(const Array k_means, segment_means(arrays.k, landmarks));
  const int64_t units = q.dim(0) * q.dim(1);
  const int64_t tokens = q.dim(2);
  const int64_t width = q.dim(3);
  const int64_t values = arrays.v.dim(3);
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  const int64_t m = landmarks;
  const Array f = weights(q, k_means, {units, tokens, width, m}, scale);
  const Array a = weights(q_means, k_means, {units, m, width, m}, scale);
  const Array g = weights(q_means, arrays.k, {units, m, width, tokens}, scale);
  VKF_ASSIGN(Array z, inverse_start(a, maximum));
  const Sizes square{units, m, m, m};
  for (int step = 0; step < 6; ++step) {
    const Array az = multiply(a, z, square);
    const Array inner = multiply(az, subtract_from(7.0, az), square);
    const Array middle = multiply(az, subtract_from(15.0, inner), square);
    z = multiply(z, subtract_from(13.0, middle), square);
    for (double& value : z.data) value *= 0.25;
  }
  const Array gathered = multiply(g, arrays.v, {units, m, tokens, values});
  const Array spread = multiply(z, gathered, {units, m, m, values});
  NystromReference result{multiply(f, spread, {units, tokens, m, values}), std::move(z)};
  result.output.shape = arrays.v.shape;
  result.pseudo_inverse.shape = {q.dim(0), q.dim(1), m, m};
  return result;
}

}  // namespace vkformer::reference
