#include "reference/inverse_spline.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

constexpr double kLeast = 1e-3;  // of widths, heights and derivatives

// The knots of K bins (K + 1) of those logits.
std::vector<double> knots_of(const double* logits, int64_t bins, double bound) {
  double largest = logits[0];
  for (int64_t i = 1; i < bins; ++i) largest = std::max(largest, logits[i]);
  double sum = 0;
  for (int64_t i = 0; i < bins; ++i) sum += std::exp(logits[i] - largest);
  std::vector<double> knots = {-bound};
  double share = 0;
  for (int64_t i = 0; i < bins; ++i) {
    share +=
        kLeast + (1 - kLeast * static_cast<double>(bins)) * (std::exp(logits[i] - largest) / sum);
    knots.push_back(2 * bound * share - bound);
  }
  knots.back() = bound;
  return knots;
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double inverse_of(double x, const double* row, int64_t bins, double bound) {
  if (!(x >= -bound && x <= bound)) return x;
  const std::vector<double> across = knots_of(row, bins, bound);
  const std::vector<double> up = knots_of(row + bins, bins, bound);
  size_t bin = 0;
  while (bin + 2 < up.size() && x >= up[bin + 1]) ++bin;
  const auto derivative = [&](size_t knot) {
    const bool end = knot == 0 || knot + 1 == up.size();
    return end ? 1.0 : kLeast + softplus(row[2 * bins + static_cast<int64_t>(knot) - 1]);
  };
  const double width = across[bin + 1] - across[bin], height = up[bin + 1] - up[bin];
  const double slope = height / width, from = derivative(bin), to = derivative(bin + 1);
  const double above = x - up[bin];
  const double bend = above * (from + to - 2 * slope);
  const double a = height * (slope - from) + bend, b = height * from - bend, c = -slope * above;
  const double root = 2 * c / (-b - std::sqrt(std::max(0.0, b * b - 4 * a * c)));
  return root * width + across[bin];
}

}  // namespace

Result<Array> inverse_spline(const Array& x, const Array& params, int64_t bins, double bound) {
  VKF_CHECK(check_array(x, "inverse_spline", "x"));
  VKF_CHECK(check_array(params, "inverse_spline", "params"));
  if (bins < 1 || params.size() != x.size() * (3 * bins - 1)) {
    return invalid_argument(message({"[inverse_spline] params has shape ", shape_text(params.shape),
                                     ", but ", bins, " bins for x of shape ", shape_text(x.shape),
                                     " need 3 bins - 1 values for each element."}));
  }
  Array y = x;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double* row = params.data.data() + i * (3 * bins - 1);
    y[i] = inverse_of(x[i], row, bins, bound);
  }
  return y;
}

}  // namespace vkformer::reference
