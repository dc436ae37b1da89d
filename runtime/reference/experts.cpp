#include "reference/experts.h"

#include <algorithm>

#include "base/check.h"

namespace vkformer::reference {
namespace {

// Row (K) times matrix `expert` of w (X, K, N), plus its bias.
std::vector<double> product(const std::vector<double>& row, const Array& w, const Array& bias,
                            int64_t expert) {
  const int64_t k = w.dim(1), n = w.dim(2);
  std::vector<double> y(static_cast<size_t>(n), 0.0);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      y[static_cast<size_t>(j)] += row[static_cast<size_t>(i)] * w[(expert * k + i) * n + j];
    }
  }
  for (int64_t j = 0; bias.size() > 0 && j < n; ++j) {
    y[static_cast<size_t>(j)] += bias[expert * n + j];
  }
  return y;
}

double gated(double gate, double other, const ExpertsOptions& o) {
  if (o.gate_limit == 0) return activate(o.activation, gate) * other;
  // Comparisons that leave a NaN as it is.
  gate = gate > o.gate_limit ? o.gate_limit : gate;
  other = other > o.gate_limit ? o.gate_limit : other < -o.gate_limit ? -o.gate_limit : other;
  return activate(o.activation, gate) * (1 + other);
}

std::vector<double> activated(const std::vector<double>& z, const ExpertsOptions& o) {
  std::vector<double> h;
  for (size_t i = 0; i < z.size(); i += o.gate ? 2 : 1) {
    h.push_back(o.gate ? gated(z[i], z[i + 1], o) : activate(o.activation, z[i]));
  }
  return h;
}

}  // namespace

Result<Array> experts(const Array& x, const Array& chosen, const Array& weights,
                      const ExpertMatrices& m, const ExpertsOptions& options) {
  const int64_t width = x.dim(-1), choices = chosen.dim(-1);
  const int64_t hidden = m.up.dim(2) / (options.gate ? 2 : 1);
  VKF_CHECK(check_shape(chosen, {x.dim(0), choices}, "experts", "chosen"));
  VKF_CHECK(check_shape(weights, {x.dim(0), choices}, "experts", "weights"));
  VKF_CHECK(check_shape(m.up, {m.up.dim(0), width, m.up.dim(2)}, "experts", "up"));
  VKF_CHECK(check_shape(m.down, {m.up.dim(0), hidden, width}, "experts", "down"));
  Array y = filled(x.shape, 0);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const auto begin = x.data.begin() + row * width;
    const std::vector<double> input(begin, begin + width);
    for (int64_t k = 0; k < choices; ++k) {
      const auto expert = static_cast<int64_t>(chosen[row * choices + k]);
      const std::vector<double> h = activated(product(input, m.up, m.up_bias, expert), options);
      const std::vector<double> z = product(h, m.down, m.down_bias, expert);
      for (int64_t i = 0; i < width; ++i) {
        y[row * width + i] +=
            options.scale * weights[row * choices + k] * z[static_cast<size_t>(i)];
      }
    }
  }
  return y;
}

}  // namespace vkformer::reference
