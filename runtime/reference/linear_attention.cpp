#include "reference/linear_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

constexpr const char* kLinearAttentionName = "linear_attention";

Status check_operands(const Array& q, const Array& k, const Array& v,
                      const LinearAttentionOptions& options) {
  VKF_CHECK(check_array(q, kLinearAttentionName, "q"));
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
    return invalid_argument(message({"[linear_attention] q ", shape_text(q.shape), ", k ",
                                     shape_text(k.shape), " and v ", shape_text(v.shape),
                                     " must have four axes: batch, head, token, width."}));
  }
  VKF_CHECK(check_shape(k, {q.dim(0), q.dim(1), k.dim(2), q.dim(3)}, kLinearAttentionName, "k"));
  VKF_CHECK(check_shape(v, {q.dim(0), q.dim(1), k.dim(2), v.dim(3)}, kLinearAttentionName, "v"));
  if (options.omega) {
    VKF_CHECK(check_array(*options.omega, kLinearAttentionName, "omega"));
    VKF_CHECK(check_shape(*options.omega, {options.omega->dim(0), q.dim(3)}, kLinearAttentionName,
                          "omega"));
  }
  if (!options.key_mask) return {};
  return check_shape(*options.key_mask, {q.dim(0), k.dim(2)}, kLinearAttentionName, "key_mask");
}

// w x' of one row, and |x'|^2 / 2.
std::vector<double> project(const Array& x, int64_t row, const Array& omega, double& half) {
  const int64_t width = x.dim(3);
  const double scale = std::pow(static_cast<double>(width), -0.25);
  std::vector<double> values;
  half = 0;
  for (int64_t e = 0; e < width; ++e) half += 0.5 * std::pow(x[row * width + e] * scale, 2);
  for (int64_t f = 0; f < omega.dim(0); ++f) {
    double sum = 0;
    for (int64_t e = 0; e < width; ++e) sum += omega[f * width + e] * x[row * width + e] * scale;
    values.push_back(sum);
  }
  return values;
}

double largest(const std::vector<double>& values) {
  double highest = -std::numeric_limits<double>::infinity();
  for (double value : values) highest = value > highest ? value : highest;
  return highest;
}

// Features of the rows first ... of one head; rows that are not kept have none.
std::vector<std::vector<double>> head_features(const Array& x, int64_t first,
                                               const std::vector<bool>& kept,
                                               const LinearAttentionOptions& options, bool keys) {
  std::vector<std::vector<double>> rows(kept.size());
  std::vector<double> halves(kept.size(), 0.0);
  double shared = -std::numeric_limits<double>::infinity();
  for (size_t t = 0; t < kept.size(); ++t) {
    if (!kept[t]) continue;
    const int64_t row = first + static_cast<int64_t>(t);
    if (options.omega) {
      rows[t] = project(x, row, *options.omega, halves[t]);
      shared = std::max(shared, largest(rows[t]));
      continue;
    }
    for (int64_t e = 0; e < x.dim(3); ++e) {
      const double value = x[row * x.dim(3) + e];
      rows[t].push_back(value > 0 ? value + 1 : std::exp(value));
    }
  }
  if (!options.omega) return rows;
  const double root = std::sqrt(static_cast<double>(options.omega->dim(0)));
  for (size_t t = 0; t < kept.size(); ++t) {
    const double c = keys ? shared : largest(rows[t]);
    for (double& value : rows[t]) {
      value = (std::exp(value - halves[t] - c) + options.kernel_eps) / root;
    }
  }
  return rows;
}

}  // namespace

Result<LinearAttentionOutputs> linear_attention(const Array& q, const Array& k, const Array& v,
                                                const LinearAttentionOptions& options) {
  VKF_CHECK(check_operands(q, k, v, options));
  const int64_t queries = q.dim(2);
  const int64_t keys = k.dim(2);
  const int64_t columns = v.dim(3);
  LinearAttentionOutputs result{filled({q.dim(0), q.dim(1), queries, columns}, 0.0),
                                filled({q.dim(0), q.dim(1), queries, keys}, 0.0)};
  for (int64_t unit = 0; unit < q.dim(0) * q.dim(1); ++unit) {
    std::vector<bool> kept(static_cast<size_t>(keys), true);
    for (size_t j = 0; options.key_mask && j < kept.size(); ++j) {
      kept[j] = (*options.key_mask)[unit / q.dim(1) * keys + static_cast<int64_t>(j)] != 0;
    }
    const auto fq = head_features(
        q, unit * queries, std::vector<bool>(static_cast<size_t>(queries), true), options, false);
    const auto fk = head_features(k, unit * keys, kept, options, true);
    for (int64_t i = 0; i < queries; ++i) {
      double total = options.epsilon;
      const int64_t row = unit * queries + i;
      for (int64_t j = 0; j < keys; ++j) {
        if (!kept[static_cast<size_t>(j)] || (options.causal && j > i)) continue;
        double& weight = result.weights[row * keys + j];
        for (size_t f = 0; f < fq[static_cast<size_t>(i)].size(); ++f) {
          weight += fq[static_cast<size_t>(i)][f] * fk[static_cast<size_t>(j)][f];
        }
        total += weight;
      }
      for (int64_t j = 0; j < keys; ++j) {
        if (!kept[static_cast<size_t>(j)] || (options.causal && j > i)) continue;
        double& weight = result.weights[row * keys + j];
        weight = total == 0 ? 0.0 : weight / total;
        for (int64_t c = 0; c < columns; ++c) {
          result.output[row * columns + c] += weight * v[(unit * keys + j) * columns + c];
        }
      }
    }
  }
  return result;
}

}  // namespace vkformer::reference
