#include "reference/additive_attention.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace vkformer::reference {
namespace {

using Score = AlignmentOptions::Score;
using Window = AlignmentOptions::Window;

// One query of one item.
struct Place {
  int64_t item;
  int64_t query;
};

// Positions of the real tokens of an item in its sentence; -1 where there is none.
std::vector<double> sentence_positions(const AlignmentInputs& in, int64_t item, double& count) {
  std::vector<double> positions;
  count = 0;
  for (int64_t j = 0; j < in.kv.dim(1); ++j) {
    const bool real = in.mask == nullptr || (*in.mask)[item * in.kv.dim(1) + j] != 0.0;
    positions.push_back(real ? count : -1.0);
    if (real) count += 1.0;
  }
  return positions;
}

double score_of(const AlignmentInputs& in, const AlignmentOptions& o, const Place& at, int64_t j,
                double position) {
  const int64_t q = (at.item * in.q.dim(1) + at.query) * in.q.dim(2);
  const int64_t k = (at.item * in.kv.dim(1) + j) * in.kv.dim(2);
  if (o.score == Score::kLocation) {
    const auto place = static_cast<int64_t>(position);
    return place < o.width ? in.q[q + place] : -std::numeric_limits<double>::infinity();
  }
  double sum = 0.0;
  for (int64_t a = 0; a < o.width; ++a) {
    sum += o.score == Score::kDot ? in.q[q + a] * in.kv[k + a]
                                  : (*in.v)[a] * std::tanh(in.q[q + a] + in.kv[k + a]);
  }
  return sum;
}

void attend(const AlignmentInputs& in, const AlignmentOptions& o, const Place& at, double* y) {
  const int64_t keys = in.kv.dim(1);
  const double none = -std::numeric_limits<double>::infinity();
  double count = 0;
  const std::vector<double> positions = sentence_positions(in, at.item, count);
  double center = static_cast<double>(o.first + at.query);
  if (o.window == Window::kPredictive) {
    center = count * in.q[(at.item * in.q.dim(1) + at.query) * in.q.dim(2) + o.width];
  }
  std::vector<double> scores;
  double highest = none;
  for (int64_t j = 0; j < keys; ++j) {
    const double position = positions[static_cast<size_t>(j)];
    const bool far =
        o.window != Window::kNone && std::abs(position - center) > static_cast<double>(o.reach);
    scores.push_back(position < 0 || far ? none : score_of(in, o, at, j, position));
    if (scores.back() > highest) highest = scores.back();
  }
  double total = 0.0;
  for (double score : scores)
    total += score == none ? 0.0 : std::exp((score - highest) / o.temperature);
  for (int64_t j = 0; j < keys; ++j) {
    const double score = scores[static_cast<size_t>(j)];
    if (o.raw_scores) y[o.value_width + j] = score;
    if (o.raw_scores || score == none) continue;
    double weight = std::exp((score - highest) / o.temperature) / total;
    if (o.window == Window::kPredictive) {
      const double sigma = static_cast<double>(o.reach) / 2;
      const double far = positions[static_cast<size_t>(j)] - center;
      weight *= std::exp(-far * far / (2 * sigma * sigma));
    }
    y[o.value_width + j] = weight;
    const int64_t value = (at.item * keys + j + 1) * in.kv.dim(2) - o.value_width;
    for (int64_t c = 0; c < o.value_width; ++c) y[c] += weight * in.kv[value + c];
  }
}

}  // namespace

Result<Array> additive_attention(const AlignmentInputs& in, const AlignmentOptions& o) {
  VKF_CHECK(check_array(in.q, "additive_attention", "q"));
  VKF_CHECK(check_array(in.kv, "additive_attention", "kv"));
  const int64_t columns = o.width + (o.window == Window::kPredictive ? 1 : 0);
  if (in.q.rank() != 3 || in.kv.rank() != 3 || in.q.dim(2) != columns) {
    return invalid_argument("[additive_attention] q must be (B, T, A) and kv (B, S, line).");
  }
  if (o.score == Score::kAdditive && in.v == nullptr) {
    return invalid_argument("[additive_attention] v is missing.");
  }
  const int64_t width = o.value_width + in.kv.dim(1);
  Array y = filled({in.q.dim(0), in.q.dim(1), width}, 0.0);
  for (int64_t b = 0; b < in.q.dim(0); ++b) {
    for (int64_t t = 0; t < in.q.dim(1); ++t) {
      attend(in, o, {b, t}, y.data.data() + (b * in.q.dim(1) + t) * width);
    }
  }
  return y;
}

}  // namespace vkformer::reference
