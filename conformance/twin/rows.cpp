// Rows one by one: elementwise operators, norms, softmax, pooling and moves with arithmetic.
#include <algorithm>
#include <bit>

#include "conformance/twin/score_terms.h"
#include "conformance/twin/twin_run.h"
#include "ops/combine.h"
#include "ops/gated_activation.h"
#include "ops/gated_norm.h"
#include "ops/gather_rows.h"
#include "ops/group_norm.h"
#include "ops/head_norm.h"
#include "ops/inverse_spline.h"
#include "ops/inverse_start.h"
#include "ops/layer_norm.h"
#include "ops/log_softmax.h"
#include "ops/mean_pool.h"
#include "ops/rms_norm.h"
#include "ops/scale_ranks.h"
#include "ops/segment_means.h"
#include "ops/softmax.h"
#include "params/spline.h"

namespace vkformer::conformance {

Real highest_of(const Memory& x, size_t base, size_t width) {
  Real highest = Real::of_bits(kSignBit | kInfinityBits);
  for (size_t i = 0; i < width; ++i) highest = x[base + i] > highest ? x[base + i] : highest;
  return highest;
}

std::vector<Real> normed_row(const std::vector<Real>& row, Real epsilon) {
  const Real count = static_cast<float>(row.size());
  RowSum sum(row.size()), rests(row.size()), squares(row.size());
  for (size_t i = 0; i < row.size(); ++i) sum.add(i, row[i]);
  const Real rough = sum.total() / count;
  for (size_t i = 0; i < row.size(); ++i) {
    const Real difference = row[i] - rough;
    rests.add(i, difference);
    squares.add(i, difference * difference);
  }
  const Real rest = rests.total() / count;
  const Real variance = at_least(squares.total() / count - rest * rest, 0.0f);
  const Real scale = inverse_root(variance + epsilon);
  std::vector<Real> y;
  for (const Real x : row) y.push_back(((x - rough) - rest) * scale);
  return y;
}

Real rms_scale(const std::vector<Real>& row, Real epsilon) {
  RowSum squares(row.size());
  for (size_t i = 0; i < row.size(); ++i) squares.add(i, row[i] * row[i]);
  return inverse_root(squares.total() / static_cast<float>(row.size()) + epsilon);
}

namespace {

bool twin_activation(TwinRun& run, const Node& node) {
  const ActivationKind kind = attrs_of<ActivationAttrs>(node).kind;
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  for (size_t i = 0; i < y.words.size(); ++i) y.put(i, activated(x[i], kind));
  return true;
}

bool twin_gated_activation(TwinRun& run, const Node& node) {
  const auto& attrs = attrs_of<GatedActivationAttrs>(node);
  const bool pairs = attrs.pairs == GatePairs::kPairs;
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const size_t width = y.width();
  for (size_t i = 0; i < y.words.size(); ++i) {
    const size_t base = i / width * 2 * width, column = i % width;
    const size_t gate = base + (pairs ? 2 * column : column);
    const size_t up = gate + (pairs ? 1 : width);
    y.put(i, activated(x[gate], attrs.kind) * activated(x[up], attrs.up));
  }
  return true;
}

bool twin_combine(TwinRun& run, const Node& node) {
  const auto& attrs = attrs_of<CombineAttrs>(node);
  const Memory &a = run.in(node, 0), &b = run.in(node, 1);
  Memory& y = run.out(node);
  for (size_t i = 0; i < y.words.size(); ++i) {
    const Real second = attrs.most > 0 ? between(b[i], -attrs.most, attrs.most) : b[i];
    y.put(i, Real(attrs.alpha) * a[i] + Real(attrs.beta) * second);
  }
  return true;
}

bool twin_scale_ranks(TwinRun& run, const Node& node) {
  const auto& attrs = attrs_of<ScaleRanksAttrs>(node);
  const Memory &x = run.in(node, 0), &scales = run.in(node, 1), &ranks = run.in(node, 2);
  Memory& y = run.out(node);
  const size_t rows = run.is_step() ? TwinSlots{run.in(node, 3)}.live() : y.rows();
  const size_t per_item = std::max<size_t>(1, y.rows() / attrs.items);
  for (size_t i = 0; i < rows * y.width(); ++i) {
    const size_t row = i / y.width();
    const size_t sequence =
        run.is_step() ? TwinSlots{run.in(node, 3)}.row(row) : row / per_item * attrs.beams;
    const auto adapter = static_cast<size_t>(std::bit_cast<float>(ranks.words[i % y.width()]));
    const size_t at = sequence * scales.width() + adapter;
    const bool zero = (scales.words[at] & 0x7fffffffu) == 0;
    y.put(i, zero ? Real() : scales[at] * x[i]);
  }
  return true;
}

bool twin_layer_norm(TwinRun& run, const Node& node) {
  const Memory &x = run.in(node, 0), &gain_bias = run.in(node, 2);
  const bool residual = TwinRun::has(node, 1);
  Memory& y = run.out(node);
  const size_t width = y.width();
  std::vector<Real> row(width);
  for (size_t r = 0; r < y.rows(); ++r) {
    for (size_t i = 0; i < width; ++i) {
      const size_t at = r * width + i;
      row[i] = residual ? x[at] + run.in(node, 1)[at] : x[at];
    }
    const std::vector<Real> normed = normed_row(row, attrs_of<LayerNormAttrs>(node).epsilon);
    for (size_t i = 0; i < width; ++i) {
      y.put(r * width + i, normed[i] * gain_bias[i] + gain_bias[width + i]);
    }
  }
  return true;
}

bool twin_rms_norm(TwinRun& run, const Node& node) {
  const Memory &x = run.in(node, 0), &gain = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t width = y.width();
  std::vector<Real> row(width);
  for (size_t base = 0; base < y.words.size(); base += width) {
    for (size_t i = 0; i < width; ++i) row[i] = x[base + i];
    const Real scale = rms_scale(row, attrs_of<RmsNormAttrs>(node).epsilon);
    for (size_t i = 0; i < width; ++i) y.put(base + i, row[i] * scale * gain[i]);
  }
  return true;
}

bool twin_log_softmax(TwinRun& run, const Node& node) {
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const size_t width = y.width();
  for (size_t base = 0; base < y.words.size(); base += width) {
    const Real highest = highest_of(x, base, width);
    RowSum sum(width);
    for (size_t i = 0; i < width; ++i) {
      const Real value = x[base + i];
      if (!value.is_negative_infinity()) sum.add(i, exp_nonpositive(value - highest));
    }
    const Real log_sum = log_of_sum(sum.total());
    for (size_t i = 0; i < width; ++i) {
      const Real value = x[base + i];
      const Real result = value.is_negative_infinity() ? value : value - highest - log_sum;
      y.put(base + i, log_sum.is_nan() ? log_sum : result);
    }
  }
  return true;
}

// What is left of a row of scores after masks; biases are added under the largest score.
bool twin_softmax(TwinRun& run, const Node& node) {
  const auto& attrs = attrs_of<SoftmaxAttrs>(node);
  const Memory& x = run.in(node, 0);
  const Memory& words = TwinRun::has(node, 1) ? run.in(node, 1) : x;
  Memory& y = run.out(node);
  const size_t keys = y.width(), queries = static_cast<size_t>(y.shape[2]),
               heads = static_cast<size_t>(y.shape[1]);
  const TwinTerms terms{words, attrs.terms, heads, queries, keys, 1.0f};
  const bool biased = terms.biased();
  const Real inverse = 1.0f / attrs.temperature, hidden = Real::of_bits(kSignBit | kInfinityBits);
  std::vector<Real> score(keys), weights(keys);
  for (size_t r = 0; r < y.rows(); ++r) {
    const size_t b = r / queries / heads, h = r / queries % heads, i = r % queries;
    Real highest = hidden, shift = biased ? hidden : Real(0.0f);
    for (size_t j = 0; j < keys; ++j) {
      const bool seen =
          terms.allowed(b, h, i, j) && !(biased && terms.bias(b, h, i, j).is_negative_infinity());
      score[j] = seen ? x[r * keys + j] : hidden;
      if (score[j] > highest) highest = score[j];
    }
    for (size_t j = 0; biased && j < keys; ++j) {
      if (score[j].is_negative_infinity()) continue;
      score[j] = (score[j] - highest) * inverse + terms.bias(b, h, i, j);
      if (score[j].is_negative_infinity()) score[j] = kLowestReal;
      if (score[j] > shift) shift = score[j];
    }
    RowSum sum(keys);
    for (size_t j = 0; j < keys; ++j) {
      const Real total = biased ? score[j] : (score[j] - highest) * inverse;
      weights[j] = exp_nonpositive(total - shift);
      sum.add(j, score[j].is_negative_infinity() ? Real(0.0f) : weights[j]);
    }
    const Real scale = online_result(1.0f, sum.total());
    for (size_t j = 0; j < keys; ++j) {
      const Real value = scale.is_nan() ? scale : weights[j] * scale;
      y.put(r * keys + j, score[j].is_negative_infinity() ? Real(0.0f) : value);
    }
  }
  return true;
}

Real with_token(PoolKind kind, Real pooled, Real value, Real number, bool first) {
  if (kind == PoolKind::kLast) return value;
  if (kind == PoolKind::kMax) {
    const bool stays = pooled.is_nan() || (!value.is_nan() && !(value > pooled));
    return first || !stays ? value : pooled;
  }
  if (kind == PoolKind::kWeightedMean) return pooled + number * value;
  return pooled + value;
}
Real pool_divisor(PoolKind kind, Real count, Real weight) {
  if (kind == PoolKind::kLast || kind == PoolKind::kMax) return 1.0f;
  if (kind == PoolKind::kWeightedMean) return weight;
  return kind == PoolKind::kMeanSqrtLength ? root(count) : count;
}
void normalize_pooled(std::vector<Real>& row) {
  // The row is read as the mean of one token.
  for (Real& x : row) x = (Real(0.0f) + x) / 1.0f;
  RowSum squares(row.size());
  for (size_t i = 0; i < row.size(); ++i) squares.add(i, row[i] * row[i]);
  const Real divisor = at_least(root(squares.total()), 1e-12f);
  for (Real& x : row) x = x / divisor;
}

bool twin_mean_pool(TwinRun& run, const Node& node) {
  const auto& attrs = attrs_of<MeanPoolAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const auto tokens = static_cast<size_t>(x.shape[1]);
  const size_t width = y.width(), words = (tokens + 31) / 32;
  for (size_t batch = 0; batch < y.rows(); ++batch) {
    std::vector<Real> pooled(width, Real(0.0f));
    uint32_t count = 0;
    Real weight = 0.0f;
    for (size_t t = 0; t < tokens; ++t) {
      if (TwinRun::has(node, 1) && !run.in(node, 1).bit(batch * words, t)) continue;
      const Real number = static_cast<float>(t + 1);
      for (size_t i = 0; i < width; ++i) {
        pooled[i] = with_token(attrs.kind, pooled[i], x[(batch * tokens + t) * width + i], number,
                               count == 0);
      }
      if (attrs.kind == PoolKind::kWeightedMean) weight += number;
      ++count;
    }
    const Real divisor = pool_divisor(attrs.kind, static_cast<float>(count), weight);
    for (Real& p : pooled) p = count == 0 ? Real(0.0f) : p / divisor;
    if (attrs.normalize == MeanPoolAttrs::Normalize::kOn) normalize_pooled(pooled);
    for (size_t i = 0; i < width; ++i) y.put(batch * width + i, pooled[i]);
  }
  return true;
}

bool twin_row_entropy(TwinRun& run, const Node& node) {
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const size_t width = x.width();
  HostArithmetic h;
  for (size_t r = 0; r < y.words.size(); ++r) {
    RowSum sum(width);
    for (size_t i = 0; i < width; ++i) {
      const Real value = x[r * width + i];
      if (value.is_nan()) sum.add(i, value);
      if (value < 0.0f) sum.add(i, Real::of_bits(kNanBits));
      if (value > 0.0f) sum.subtract(i, value * Real(logarithm(h, value.f)));
    }
    y.put(r, sum.total());
  }
  return true;
}

bool twin_gated_norm(TwinRun& run, const Node& node) {
  using Order = GatedNormAttrs::Order;
  const auto& a = attrs_of<GatedNormAttrs>(node);
  const Memory &x = run.in(node, 0), &z = run.in(node, 1);
  Memory& y = run.out(node);
  const bool normed = a.order != Order::kGateOnly;
  const size_t width = y.width(), group = normed ? run.in(node, 2).width() : width;
  std::vector<Real> row(group), gates(group);
  for (size_t at = 0; at < y.words.size(); at += group) {
    const size_t column = at % width;
    for (size_t i = 0; i < group; ++i) {
      gates[i] = activated(z[at / width * z.width() + a.first + column + i], a.activation);
      row[i] = a.order == Order::kGateFirst ? x[at + i] * gates[i] : x[at + i];
    }
    const Real scale = normed ? rms_scale(row, a.epsilon) : Real(1.0f);
    for (size_t i = 0; i < group; ++i) {
      Real h = x[at + i] * gates[i];
      if (normed) h *= scale * run.in(node, 2)[column + i];
      y.put(at + i, h);
    }
  }
  return true;
}

bool twin_group_norm(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<GroupNormAttrs>(node);
  const Memory &x = run.in(node, 0), &gain_bias = run.in(node, 1);
  Memory& y = run.out(node);
  const bool last = a.order == ChannelOrder::kLast;
  const auto batch = static_cast<size_t>(x.shape[0]);
  const auto channels = static_cast<size_t>(x.shape[last ? 2 : 1]),
             tokens = static_cast<size_t>(x.shape[last ? 1 : 2]);
  const size_t each = channels / a.groups, size = each * tokens;
  std::vector<Real> row(size);
  for (size_t r = 0; r < batch * a.groups; ++r) {
    const size_t b = r / a.groups, first = r % a.groups * each;
    const auto place = [&](size_t i) {
      return last ? (b * tokens + i / each) * channels + first + i % each
                  : (b * channels + first + i / tokens) * tokens + i % tokens;
    };
    for (size_t i = 0; i < size; ++i) row[i] = x[place(i)];
    const std::vector<Real> normed = normed_row(row, a.epsilon);
    for (size_t i = 0; i < size; ++i) {
      const size_t channel = first + (last ? i % each : i / tokens);
      y.put(place(i), normed[i] * gain_bias[channel] + gain_bias[channels + channel]);
    }
  }
  return true;
}

bool twin_head_norm(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<HeadNormAttrs>(node);
  const Memory &x = run.in(node, 0), &gain = run.in(node, 1);
  Memory& y = run.out(node);
  y.words = x.words;
  const auto heads = static_cast<size_t>(gain.shape[0]);
  const size_t width = y.width(), each = gain.width();
  std::vector<Real> row(each);
  for (size_t unit = 0; unit < y.rows() * heads; ++unit) {
    const size_t gains = unit % heads * each, at = unit / heads * width + a.first + gains;
    for (size_t i = 0; i < each; ++i) row[i] = x[at + i];
    if (a.kind == HeadNormAttrs::Kind::kCentered) {
      const std::vector<Real> normed = normed_row(row, a.epsilon);
      for (size_t i = 0; i < each; ++i) y.put(at + i, normed[i] * gain[gains + i]);
      continue;
    }
    const Real scale = rms_scale(row, a.epsilon);
    for (size_t i = 0; i < each; ++i) y.put(at + i, row[i] * scale * gain[gains + i]);
  }
  return true;
}

bool twin_gather_rows(TwinRun& run, const Node& node) {
  const Memory &x = run.in(node, 0), &indices = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t width = y.width();
  for (size_t i = 0; i < y.words.size(); ++i) {
    const size_t index = indices.words[i / width];
    y.words[i] = index < x.rows() ? x.words[index * width + i % width] : 0;
    if (!TwinRun::has(node, 2)) continue;
    const Memory& addend = run.in(node, 2);
    y.put(i, y[i] + addend[i % addend.words.size()]);
  }
  return true;
}

bool twin_segment_means(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<SegmentMeansAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const uint32_t span = a.tokens / a.segments;
  const auto place = [](const HeadLayout& l, size_t b, size_t h, size_t t) {
    return l.offset + b * l.batch_stride + h * l.head_stride + t * l.row_stride;
  };
  for (size_t unit = 0; unit < size_t{a.batch} * a.heads * a.segments; ++unit) {
    const size_t b = unit / a.segments / a.heads, h = unit / a.segments % a.heads,
                 m = unit % a.segments;
    for (size_t e = 0; e < a.head_width; ++e) {
      Real sum = 0.0f;
      for (size_t t = 0; t < span; ++t) sum += x[place(a.x, b, h, m * span + t) + e];
      y.put(place(a.y, b, h, m) + e, sum / static_cast<float>(span));
    }
  }
  return true;
}

bool twin_inverse_start(TwinRun& run, const Node& node) {
  const Memory &a = run.in(node, 0), &sums = run.in(node, 1);
  Memory& y = run.out(node);
  const bool own = attrs_of<InverseStartAttrs>(node).maximum == InverseStartAttrs::Maximum::kOwn;
  const size_t side = y.width(), size = side * side;
  for (size_t at = 0; at < y.words.size(); ++at) {
    const size_t matrix = at / size, i = at % size;
    Real highest = Real::of_bits(kSignBit | kInfinityBits);
    for (size_t n = own ? matrix * side : 0; n < (own ? (matrix + 1) * side : sums.words.size());
         ++n) {
      if (sums[n].is_nan() || sums[n] > highest) highest = sums[n];
      if (highest.is_nan()) break;
    }
    y.put(at, a[matrix * size + i % side * side + i / side] / highest);
  }
  return true;
}

// Of logits: the largest, and the sum of exponentials.
struct SplineSums {
  Real most, sum = 0.0f;
};
SplineSums spline_sums(const Memory& raw, size_t first, size_t bins) {
  SplineSums s{raw[first]};
  for (size_t i = 1; i < bins; ++i) s.most = s.most < raw[first + i] ? raw[first + i] : s.most;
  for (size_t i = 0; i < bins; ++i) s.sum += exp_of(raw[first + i] - s.most);
  return s;
}

bool twin_inverse_spline(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<InverseSplineAttrs>(node);
  const Memory &x = run.in(node, 0), &raw = run.in(node, 1);
  Memory& y = run.out(node);
  const size_t bins = a.bins;
  const Real bound = a.bound, least = VKF_SPLINE_LEAST;
  for (size_t n = 0; n < y.words.size(); ++n) {
    const Real value = x[n];
    y.put(n, value);
    if (value.is_nan() || value < -bound || value > bound) continue;
    const size_t widths = n * (3 * bins - 1), heights = widths + bins, inner = heights + bins;
    const SplineSums w = spline_sums(raw, widths, bins), h = spline_sums(raw, heights, bins);
    const Real share = Real(1.0f) - least * static_cast<float>(bins), whole = Real(2.0f) * bound;
    Real across = 0.0f, up = 0.0f, left = -bound, bottom = -bound;
    Real from_x, wide, from_y, high;
    size_t bin = 0;
    for (size_t i = 0; i < bins; ++i) {
      across += least + share * (exp_of(raw[widths + i] - w.most) / w.sum);
      up += least + share * (exp_of(raw[heights + i] - h.most) / h.sum);
      const bool last = i + 1 == bins;
      const Real right = last ? bound : whole * across - bound;
      const Real top = last ? bound : whole * up - bound;
      if (i == 0 || value > bottom || value.f == bottom.f) {
        from_x = left, wide = right - left, from_y = bottom, high = top - bottom, bin = i;
      }
      left = right, bottom = top;
    }
    const auto derivative = [&](size_t knot) {
      if (knot == 0 || knot == bins) return Real(1.0f);
      return least + softplus(raw[inner + knot - 1]);
    };
    const Real from = derivative(bin), to = derivative(bin + 1);
    const Real slope = high / wide, above = value - from_y;
    const Real bend = above * (from + to - Real(2.0f) * slope);
    const Real q = high * (slope - from) + bend, b = high * from - bend, c = -slope * above;
    const Real inside = b * b - Real(4.0f) * q * c;
    const Real solution = Real(2.0f) * c / (-b - root(at_least(inside, 0.0f)));
    y.put(n, solution * wide + from_x);
  }
  return true;
}

constexpr TwinOp kRowTwins[] = {{"activation", twin_activation},
                                {"combine", twin_combine},
                                {"gated_activation", twin_gated_activation},
                                {"gated_norm", twin_gated_norm},
                                {"gather_rows", twin_gather_rows},
                                {"group_norm", twin_group_norm},
                                {"head_norm", twin_head_norm},
                                {"inverse_spline", twin_inverse_spline},
                                {"inverse_start", twin_inverse_start},
                                {"layer_norm", twin_layer_norm},
                                {"log_softmax", twin_log_softmax},
                                {"mean_pool", twin_mean_pool},
                                {"rms_norm", twin_rms_norm},
                                {"row_entropy", twin_row_entropy},
                                {"scale_ranks", twin_scale_ranks},
                                {"segment_means", twin_segment_means},
                                {"softmax", twin_softmax}};

}  // namespace

std::span<const TwinOp> row_twins() {
  return kRowTwins;
}

}  // namespace vkformer::conformance
