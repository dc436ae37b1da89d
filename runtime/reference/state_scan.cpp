#include "reference/state_scan.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "reference/activation.h"

namespace vkformer::reference {
namespace {

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// One head of one item.
struct HeadScan {
  const Array& x;
  const Array& rates;
  const StateScanOptions& o;
  int64_t head;
  std::vector<double> state, q, k;  // (E, Ev), (E), (E)

  // The head's keys or queries of the row that begins at `at`.
  void read(int64_t at, std::vector<double>& to) const {
    const int64_t from = at + head / (o.heads / o.key_heads) * o.width;
    double squares = o.norm_epsilon;
    for (int64_t i = 0; i < o.width; ++i) {
      to[static_cast<size_t>(i)] = x[from + i];
      squares += x[from + i] * x[from + i];
    }
    if (o.norm_epsilon <= 0) return;
    for (double& value : to) value /= std::sqrt(squares);
  }

  double& element(int64_t i, int64_t j) {
    return state[static_cast<size_t>(i * o.value_width + j)];
  }

  // Goes on by the token whose row of x begins at `at`, and writes its y from `to` on.
  void step(int64_t at, Array& y, int64_t to) {
    read(at + o.k_offset, k);
    read(at + o.q_offset, q);
    const double raw = softplus(x[at + o.a_offset + head] + rates[o.heads + head]);
    const double rate = o.delta ? raw : std::min(std::max(raw, o.least_rate), o.most_rate);
    const double decay = std::exp(-std::exp(rates[head]) * rate);
    for (double& value : state) value *= decay;
    for (int64_t j = 0; j < o.value_width; ++j) {
      const double v = x[at + o.v_offset + head * o.value_width + j];
      double known = 0.0;
      for (int64_t i = 0; i < o.width; ++i) known += element(i, j) * k[static_cast<size_t>(i)];
      const double strength = 1.0 / (1.0 + std::exp(-x[at + o.b_offset + head]));
      const double u = o.delta ? strength * (v - known) : rate * v;
      double sum = o.delta ? 0.0 : rates[2 * o.heads + head] * v;
      for (int64_t i = 0; i < o.width; ++i) {
        element(i, j) += k[static_cast<size_t>(i)] * u;
        sum += o.q_scale * q[static_cast<size_t>(i)] * element(i, j);
      }
      y[to + j] = sum;
    }
  }
};

}  // namespace

Result<Array> causal_conv(const Array& x, const Array& taps, const CausalConvOptions& o) {
  VKF_CHECK(check_array(x, "causal_conv", "x"));
  VKF_CHECK(check_array(taps, "causal_conv", "taps"));
  if (x.rank() != 3 || taps.rank() != 2 || taps.dim(0) < (o.bias ? 2 : 1) ||
      o.first + taps.dim(1) > x.dim(2)) {
    return invalid_argument(
        "[causal_conv] x must be (B, T, W) and taps (K, C) or (K + 1, C), whose channels lie in a "
        "row of x; give arrays of these shapes.");
  }
  const int64_t tokens = x.dim(1), width = x.dim(2), channels = taps.dim(1);
  const int64_t count = taps.dim(0) - (o.bias ? 1 : 0);
  const auto counts = [&](int64_t row) { return o.mask == nullptr || (*o.mask)[row] != 0; };
  const int64_t out = o.all_columns ? width : channels, to = o.all_columns ? o.first : 0;
  Array y = filled({x.dim(0), tokens, out}, 0.0);
  for (int64_t row = 0; row < x.dim(0) * tokens; ++row) {
    if (!counts(row)) continue;
    for (int64_t i = 0; o.all_columns && i < width; ++i) y[row * out + i] = x[row * width + i];
    Array sums = filled({channels}, 0.0);
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] = o.bias ? taps[count * channels + c] : 0.0;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t back = count - 1 - k, at = (row - back) * width;
        if (row % tokens < back || !counts(row - back)) continue;
        const double gate = o.gated ? x[at + o.in_gate + c] : 1.0;
        sums[c] += taps[k * channels + c] * x[at + o.first + c] * gate;
      }
    }
    VKF_ASSIGN(sums, activation(sums, o.activation));
    for (int64_t c = 0; c < channels; ++c) {
      const double gate = o.gated ? x[row * width + o.out_gate + c] : 1.0;
      y[row * out + to + c] = sums[c] * gate;
    }
  }
  return y;
}

Result<Array> state_scan(const Array& x, const Array& rates, const StateScanOptions& o) {
  VKF_CHECK(check_array(x, "state_scan", "x"));
  VKF_CHECK(check_shape(rates, {o.delta ? 2 : 3, o.heads}, "state_scan", "rates"));
  if (x.rank() != 3 || o.key_heads < 1 || o.heads % o.key_heads != 0) {
    return invalid_argument(
        "[state_scan] x must be (B, T, W), and the heads a multiple of those of keys; give such "
        "arrays.");
  }
  const auto e = static_cast<size_t>(o.width), ev = static_cast<size_t>(o.value_width);
  Array y = filled({x.dim(0), x.dim(1), o.heads * o.value_width}, 0.0);
  for (int64_t item = 0; item < x.dim(0); ++item) {
    for (int64_t h = 0; h < o.heads; ++h) {
      HeadScan scan{x,
                    rates,
                    o,
                    h,
                    std::vector<double>(e * ev),
                    std::vector<double>(e),
                    std::vector<double>(e)};
      for (int64_t t = 0; t < x.dim(1); ++t) {
        const int64_t row = item * x.dim(1) + t;
        scan.step(row * x.dim(2), y, row * y.dim(2) + h * o.value_width);
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
