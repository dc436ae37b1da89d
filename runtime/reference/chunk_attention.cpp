#include "reference/chunk_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/message.h"

namespace vkformer::reference {
namespace {

struct Problem {
  const Array& q;
  const Array& k;
  const Array& v;
  const ChunkAttentionOptions& options;
  int64_t rounds;

  int64_t tokens() const { return q.dim(2); }
  int64_t position(int64_t unit, int64_t place) const {
    if (!options.order) return place;
    return static_cast<int64_t>((*options.order)[unit * rounds * tokens() + place]);
  }
};

// Positions of the keys that the chunk attends to, one chunk after the other, each as often as it
// occurs.
std::vector<int64_t> window(const Problem& p, int64_t chunk) {
  const int64_t chunks = p.rounds * p.tokens() / p.options.chunk;
  std::vector<int64_t> places;
  for (int64_t distance = -p.options.before; distance <= p.options.after; ++distance) {
    const int64_t offset = std::abs(distance) < chunks ? distance : 0;
    const int64_t neighbor = (chunk + offset + chunks) % chunks;
    for (int64_t n = 0; n < p.options.chunk; ++n) places.push_back(neighbor * p.options.chunk + n);
  }
  return places;
}

// The score of a query and a key, -inf where it may not be seen.
double score(const Problem& p, int64_t unit, int64_t own, int64_t key) {
  const int64_t width = p.q.dim(3);
  if (p.options.shared && own == key) return -1e5;
  const int64_t batch = unit / p.q.dim(1);
  const bool kept = !p.options.mask || (*p.options.mask)[batch * p.tokens() + key] != 0.0;
  if (!kept || (p.options.causal && key > own)) return -std::numeric_limits<double>::infinity();
  double product = 0;
  double squares = 0;
  for (int64_t e = 0; e < width; ++e) {
    const double value = p.k[(unit * p.tokens() + key) * width + e];
    product += p.q[(unit * p.tokens() + own) * width + e] * value;
    squares += value * value;
  }
  if (p.options.shared) product /= std::sqrt(squares / static_cast<double>(width) + 1e-6);
  return product / std::sqrt(static_cast<double>(width));
}

void attend(const Problem& p, int64_t unit, int64_t place, double* row) {
  const int64_t own = p.position(unit, place);
  const int64_t values = p.v.dim(3);
  const std::vector<int64_t> places = window(p, place / p.options.chunk);
  std::vector<double> scores;
  double highest = -std::numeric_limits<double>::max();
  for (int64_t at : places) {
    scores.push_back(score(p, unit, own, p.position(unit, at)));
    if (scores.back() > highest) highest = scores.back();
  }
  double total = 0;
  for (size_t n = 0; n < places.size(); ++n) {
    if (scores[n] == -std::numeric_limits<double>::infinity()) continue;
    const double weight = std::exp(scores[n] - highest);
    const int64_t key = p.position(unit, places[n]);
    total += weight;
    for (int64_t e = 0; e < values; ++e) {
      row[e] += weight * p.v[(unit * p.tokens() + key) * values + e];
    }
  }
  for (int64_t e = 0; e < values && total != 0; ++e) row[e] /= total;
  row[values] = highest;
  row[values + 1] = total;
}

}  // namespace

Result<Array> chunk_attention(const Array& q, const Array& k, const Array& v,
                              const ChunkAttentionOptions& options) {
  VKF_CHECK(check_array(q, "chunk_attention", "q"));
  VKF_CHECK(check_shape(k, q.shape, "chunk_attention", "k"));
  VKF_CHECK(check_array(v, "chunk_attention", "v"));
  if (q.rank() != 4 || v.rank() != 4 || options.chunk < 1 || q.dim(2) % options.chunk != 0) {
    return invalid_argument(message(
        {"[chunk_attention] q ", shape_text(q.shape), " and v ", shape_text(v.shape),
         " must have four axes and a multiple of the chunk's ", options.chunk, " tokens."}));
  }
  const Problem p{q, k, v, options, options.order ? options.order->dim(2) : 1};
  const int64_t width = v.dim(3) + 2;
  Array y = filled({q.dim(0), q.dim(1), p.rounds, q.dim(2), width}, 0.0);
  const int64_t places = p.rounds * p.tokens();
  for (int64_t unit = 0; unit < q.dim(0) * q.dim(1); ++unit) {
    for (int64_t place = 0; place < places; ++place) {
      const int64_t row = place / p.tokens() * p.tokens() + p.position(unit, place);
      attend(p, unit, place, &y.data[static_cast<size_t>((unit * places + row) * width)]);
    }
  }
  return y;
}

}  // namespace vkformer::reference
