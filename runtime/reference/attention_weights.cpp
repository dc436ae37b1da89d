#include "reference/attention_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "base/check.h"
#include "base/message.h"
#include "reference/softmax.h"

namespace vkformer::reference {
namespace {

constexpr const char* kAttentionName = "attention";

Status check_heads(const Array& q, const Array& k, const Array& v) {
  VKF_CHECK(check_array(q, kAttentionName, "q"));
  VKF_CHECK(check_array(k, kAttentionName, "k"));
  VKF_CHECK(check_array(v, kAttentionName, "v"));
  const std::string shapes = "q has shape " + shape_text(q.shape) + ", k " + shape_text(k.shape) +
                             ", v " + shape_text(v.shape);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
    return invalid_argument(
        message({"[attention] ", shapes, "; each needs four axes: batch, head, token, width."}));
  }
  if (q.dim(0) != k.dim(0) || q.dim(3) != k.dim(3)) {
    return invalid_argument(
        message({"[attention] ", shapes, "; q and k must agree in batch size and head width."}));
  }
  if (k.dim(0) != v.dim(0) || k.dim(1) != v.dim(1) || k.dim(2) != v.dim(2)) {
    return invalid_argument(
        message({"[attention] ", shapes, "; k and v must agree in batch size, heads and tokens."}));
  }
  if (k.dim(1) == 0 || q.dim(1) % k.dim(1) != 0) {
    return invalid_argument(message(
        {"[attention] ", shapes,
         "; the number of query heads must be a multiple of the number of key/value heads."}));
  }
  return {};
}

// Row h of the flattened (B, H) axes reads this row of the flattened (B, Hkv) axes.
int64_t key_row(int64_t row, int64_t heads, int64_t key_heads) {
  return row / heads * key_heads + row % heads * key_heads / heads;
}

// A table of rows by distance, (2R + 1, E) or (2R + 1, H, E).
struct DistanceRows {
  const Array* table = nullptr;

  int64_t rows() const { return table->dim(0); }
  int64_t width() const { return table->dim(table->rank() - 1); }
  // Element e of the row of head h for pair (i, j).
  double at(int64_t h, int64_t distance, int64_t e) const {
    const int64_t reach = rows() / 2;
    const int64_t row = std::clamp(distance, -reach, reach) + reach;
    const int64_t heads = table->rank() == 3 ? table->dim(1) : 1;
    return (*table)[(row * heads + (heads == 1 ? 0 : h)) * width() + e];
  }
};

Status check_distance_rows(const Array* table, const char* name, int64_t heads, int64_t width) {
  if (table == nullptr) return {};
  const bool fits = (table->rank() == 2 || (table->rank() == 3 && table->dim(1) == heads)) &&
                    table->dim(0) % 2 == 1 && table->dim(table->rank() - 1) == width;
  if (fits) return {};
  return invalid_argument(
      message({"[attention] ", name, " has shape ", shape_text(table->shape),
               ", but must be (2R + 1, ", width, ") or (2R + 1, ", heads, ", ", width, ")."}));
}

Status check_relative(const AttentionOptions& options, const Shape& shape, int64_t width,
                      int64_t value_width) {
  const RelativeOptions& r = options.relative;
  VKF_CHECK(check_distance_rows(r.keys, "relative_keys", shape[1], width));
  VKF_CHECK(check_distance_rows(r.queries, "relative_queries", shape[1], width));
  VKF_CHECK(check_distance_rows(r.values, "relative_values", shape[1], value_width));
  if (r.products) {
    const int64_t distances = r.keys ? r.keys->dim(0) : 1;
    VKF_CHECK(check_shape(*r.products, {shape[0], shape[1], shape[3], distances}, kAttentionName,
                          "relative_products"));
  }
  if (r.content_bias)
    VKF_CHECK(check_shape(*r.content_bias, {shape[1], width}, kAttentionName, "content_bias"));
  if (r.position_bias) {
    VKF_CHECK(check_shape(*r.position_bias, {shape[1], width}, kAttentionName, "position_bias"));
  }
  if (options.softcap >= 0.0 && std::isfinite(options.softcap)) return {};
  return invalid_argument(message(
      {"[attention] softcap is ", options.softcap, ", but must be above 0, or 0 for none."}));
}

// The part of a product that positions add: a . k + u . k + (q + c) . r, element by element.
double relative_product(const RelativeOptions& r, std::span<const double> q,
                        std::span<const double> k, int64_t h, int64_t distance) {
  const int64_t width = static_cast<int64_t>(q.size());
  double sum = 0.0;
  for (int64_t e = 0; e < width; ++e) {
    const auto at = static_cast<size_t>(e);
    if (r.content_bias) sum += (*r.content_bias)[h * width + e] * k[at];
    if (r.queries) sum += DistanceRows{r.queries}.at(h, distance, e) * k[at];
    if (!r.keys) continue;
    const double c = r.position_bias ? (*r.position_bias)[h * width + e] : 0.0;
    sum += (q[at] + c) * DistanceRows{r.keys}.at(h, distance, e);
  }
  return sum;
}

// (capped(scale (q . k + relative)) + alibi + bias) / temperature for every pair; `shape` is {B, H,
// T, S}.
Result<Array> pair_scores(const Array& q, const Array& k, const Shape& shape,
                          const AttentionOptions& options) {
  const int64_t heads = shape[1];
  const int64_t queries = shape[2];
  const int64_t keys = shape[3];
  const int64_t width = q.dim(3);
  const double scale = options.scale.value_or(1.0 / std::sqrt(static_cast<double>(width)));
  if (options.alibi_slopes) {
    VKF_CHECK(check_shape(*options.alibi_slopes, {heads}, kAttentionName, "alibi_slopes"));
  }
  Array bias;
  if (options.bias) {
    VKF_ASSIGN(bias, broadcast_to(*options.bias, shape, kAttentionName, "bias"));
  }
  Array scores = filled(shape, 0.0);
  for (int64_t at = 0; at < scores.size(); ++at) {
    const int64_t j = at % keys;
    const int64_t i = at / keys % queries;
    const int64_t row = at / (keys * queries);
    const int64_t q_at = (row * queries + i) * width;
    const int64_t k_at = (key_row(row, heads, k.dim(1)) * keys + j) * width;
    double score = 0.0;
    for (int64_t e = 0; e < width; ++e) score += q[q_at + e] * k[k_at + e];
    const auto row_of = [width](const Array& x, int64_t begin) {
      return std::span(x.data).subspan(static_cast<size_t>(begin), static_cast<size_t>(width));
    };
    if (options.relative.any()) {
      score += relative_product(options.relative, row_of(q, q_at), row_of(k, k_at), row % heads,
                                j - i - options.masks.causal_offset);
    }
    if (options.relative.products) {
      const Array& products = *options.relative.products;
      const int64_t reach = products.dim(3) / 2;
      const int64_t distance = std::clamp(j - i - options.masks.causal_offset, -reach, reach);
      score += products[(row * keys + j) * products.dim(3) + distance + reach];
    }
    score *= scale;
    if (options.softcap > 0.0) score = options.softcap * std::tanh(score / options.softcap);
    if (options.alibi_slopes) {
      const double distance =
          static_cast<double>(j - i) - static_cast<double>(options.masks.causal_offset);
      score += (*options.alibi_slopes)[row % heads] * distance;
    }
    if (options.bias) score += bias[at];
    scores[at] = score / options.temperature;
    const double count = pair_count(shape, options.masks, at);
    if (count > 0.0) scores[at] += std::log(count);
  }
  return scores;
}

// weights (V + rows by distance); a weight whose score was -inf does not read its value.
Array weighted_values(const Array& weights, const Array& masked_scores, const Array& v,
                      const AttentionOptions& options) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  const int64_t heads = weights.dim(1);
  const int64_t queries = weights.dim(2);
  const int64_t keys = weights.dim(3);
  const int64_t width = v.dim(3);
  Array output = filled({weights.dim(0), heads, queries, width}, 0.0);
  for (int64_t at = 0; at < weights.size(); ++at) {
    if (masked_scores[at] == kMasked) continue;
    const int64_t query = at / keys;
    const int64_t v_row = key_row(query / queries, heads, v.dim(1)) * keys + at % keys;
    const int64_t distance = at % keys - query % queries - options.masks.causal_offset;
    for (int64_t e = 0; e < width; ++e) {
      double value = v[v_row * width + e];
      if (options.relative.values) {
        value += DistanceRows{options.relative.values}.at(query / queries % heads, distance, e);
      }
      output[query * width + e] += weights[at] * value;
    }
  }
  return output;
}

// - sum p ln p of every row, with 0 ln 0 = 0.
Array row_entropy(const Array& weights) {
  const int64_t keys = weights.dim(3);
  Array entropy = filled({weights.dim(0), weights.dim(1), weights.dim(2)}, 0.0);
  for (int64_t at = 0; at < weights.size(); ++at) {
    const double p = weights[at];
    if (p != 0.0) entropy[at / keys] -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

Result<AttentionOutputs> attention_weights(const Array& q, const Array& k, const Array& v,
                                           const AttentionOptions& options) {
  VKF_CHECK(check_heads(q, k, v));
  VKF_CHECK(check_temperature(options.temperature, kAttentionName));
  const Shape shape = {q.dim(0), q.dim(1), q.dim(2), k.dim(2)};
  VKF_CHECK(check_relative(options, shape, q.dim(3), v.dim(3)));
  VKF_ASSIGN(const Array allowed, allowed_pairs(shape, options.masks, kAttentionName));
  AttentionOutputs out;
  VKF_ASSIGN(out.scores, pair_scores(q, k, shape, options));
  Array masked = out.scores;
  for (int64_t i = 0; i < masked.size(); ++i) {
    if (allowed[i] == 0.0) masked[i] = -std::numeric_limits<double>::infinity();
  }
  out.weights = masked;
  if (options.sink_scores) {
    VKF_CHECK(check_shape(*options.sink_scores, {shape[1]}, kAttentionName, "sink_scores"));
  }
  const size_t keys = static_cast<size_t>(shape[3]);
  for (size_t row = 0; row < out.weights.data.size(); row += keys) {
    const auto weights = std::span(out.weights.data).subspan(row, keys);
    std::vector<double> columns(weights.begin(), weights.end());
    if (options.sink_scores) {
      const int64_t head = static_cast<int64_t>(row / keys) / shape[2] % shape[1];
      columns.push_back((*options.sink_scores)[head] / options.temperature);
    }
    softmax_row(columns);
    std::copy_n(columns.begin(), keys, weights.begin());
  }
  out.output = weighted_values(out.weights, masked, v, options);
  out.entropy = row_entropy(out.weights);
  return out;
}

}  // namespace vkformer::reference
