// Sums over keys of features times values: linear attention, and projections of sequences.
#include <cmath>
#include <functional>

#include "conformance/twin/score_terms.h"
#include "ops/linear_attention.h"
#include "ops/linear_attention_lowering.h"
#include "ops/linear_state.h"
#include "ops/sequence_projection.h"

namespace vkformer::conformance {
namespace {

using LinearMap = LinearFeatureAttrs::Map;

// The features of one token; of a key its peak as well.
struct TwinFeatures {
  std::vector<Real> values;
  Real peak = 0.0f;
};

class FeatureMap {
 public:
  // `omega` is null where there is none.
  FeatureMap(const LinearFeatureAttrs& attrs, const Memory* omega, size_t width)
      : attrs_(attrs), omega_(omega), width_(width) {
    const double root = std::sqrt(std::sqrt(static_cast<double>(width)));
    scale_ = static_cast<float>(1.0 / root);
  }
  size_t mapped() const { return favor() ? omega_->rows() : width_; }
  bool has_one() const { return linear_has_one(attrs_); }
  bool fades() const { return linear_fades(attrs_); }
  size_t count() const { return mapped() + (has_one() ? 1 : 0); }

  TwinFeatures query(const Memory& x, size_t at) const {
    TwinFeatures f = raw(x, at, true, false);
    if (!favor()) return f;
    const size_t lanes = linear_feature_lanes(twin_caps(), static_cast<uint32_t>(mapped()),
                                              static_cast<uint32_t>(width_));
    std::vector<Real> sums(lanes, Real(0.0f));
    for (size_t n = 0; n < mapped(); ++n) {
      f.values[n] = exp_nonpositive(f.values[n] - f.peak) + attrs_.kernel_eps;
      sums[n % lanes] += f.values[n];
    }
    if (!has_one()) return f;
    Real sum = 0.0f;
    for (const Real part : sums) sum += part;
    f.values.push_back(Real(attrs_.kernel_eps) * sum);
    return f;
  }
  // Exponents where features fade. A masked key is not read.
  TwinFeatures key(const Memory& x, size_t at, bool kept) const {
    TwinFeatures f = raw(x, at, kept, true);
    if (has_one()) f.values.push_back(1.0f);
    if (!favor()) f.peak = 0.0f;
    if (!kept) f.peak = Real::of_bits(kSignBit | kInfinityBits);
    return f;
  }
  // Feature n of a key under a peak.
  Real faded(const TwinFeatures& key, size_t n, Real peak) const {
    const bool one = has_one() && n + 1 == count();
    return fades() && !one ? exp_nonpositive(key.values[n] - peak) : key.values[n];
  }

 private:
  bool favor() const { return attrs_.map == LinearMap::kFavor; }
  TwinFeatures raw(const Memory& x, size_t at, bool kept, bool key) const {
    TwinFeatures f{{}, kLowestReal};
    std::vector<Real> row(width_, Real(0.0f));
    for (size_t e = 0; kept && e < width_; ++e) {
      row[e] = favor() ? x[at + e] * scale_ : x[at + e] * 1.0f;
    }
    if (!favor()) {
      for (const Real v : row) f.values.push_back(v > 0.0f ? v + 1.0f : exp_nonpositive(v));
      return f;
    }
    Real halves = 0.0f;
    for (const Real v : row) halves += Real(0.5f) * v * v;
    for (size_t n = 0; n < mapped(); ++n) {
      Real whole = 0.0f;
      for (size_t e = 0; e < width_; ++e) whole += (*omega_)[n * width_ + e] * row[e];
      if (has_one()) f.peak = keep_max(f.peak, whole);
      if (key || has_one()) whole = whole - halves;
      if (!has_one()) f.peak = keep_max(f.peak, whole);
      f.values.push_back(whole);
    }
    return f;
  }

  const LinearFeatureAttrs& attrs_;
  const Memory* omega_;
  size_t width_;
  Real scale_;
};

// The keys of one head of one item.
struct TwinKeys {
  std::function<bool(size_t j)> kept;
  std::function<Real(size_t j)> peak;
  std::function<Real(size_t j, size_t n, Real peak)> feature;
  std::function<Real(size_t j, size_t e)> value;
  size_t features, width;
  bool fades, has_one;
  size_t fading;  // words that fade, from the first

  size_t words() const { return features * (width + 1) + 2; }
};

// sum_j f_j [v_j | 1] of keys first ... end - 1, and twice the peak.
std::vector<Real> chunk_sum(const TwinKeys& k, size_t first, size_t end) {
  Real peak = k.fades ? kLowestReal : 0.0f;
  for (size_t j = first; k.fades && j < end; ++j) peak = keep_max(peak, k.peak(j));
  std::vector<Real> sum(k.words(), Real(0.0f));
  for (size_t j = first; j < end; ++j) {
    if (!k.kept(j)) continue;
    for (size_t n = 0; n < k.features; ++n) {
      const Real weight = k.feature(j, n, peak);
      Real* row = &sum[n * (k.width + 1)];
      for (size_t e = 0; e < k.width; ++e) row[e] += weight * k.value(j, e);
      row[k.width] += weight;
    }
  }
  sum[k.words() - 2] = sum[k.words() - 1] = peak;
  return sum;
}

// The sum over all chunks, and in `before` the sums before each of them.
std::vector<Real> scanned(const TwinKeys& k, const std::vector<std::vector<Real>>& chunks,
                          std::vector<std::vector<Real>>& before) {
  const size_t peak_word = k.words() - 2;
  Real peak = k.fades ? kLowestReal : 0.0f;
  if (k.has_one) {
    for (const auto& chunk : chunks) peak = keep_max(peak, chunk[peak_word]);
  }
  std::vector<Real> sum(k.words(), Real(0.0f));
  for (const auto& chunk : chunks) {
    const Real own = chunk[peak_word], now = k.fades ? keep_max(peak, own) : peak;
    std::vector<Real> values = chunk;
    for (size_t w = 0; k.fades && w < k.fading; ++w) {
      sum[w] *= online_fade(peak, now, 1.0f);
      values[w] *= online_fade(own, now, 1.0f);
    }
    peak = now;
    before.push_back(sum);
    before.back()[peak_word + 1] = peak;
    for (size_t w = 0; w < peak_word; ++w) sum[w] += values[w];
  }
  sum[peak_word] = sum[peak_word + 1] = peak;
  return sum;
}

// A node over whole sequences.
class TwinLinear {
 public:
  TwinLinear(TwinRun& run, const Node& node, const LinearAttentionAttrs& a)
      : a_(a),
        x_(run.in(node, 0)),
        mask_(TwinRun::has(node, 2) ? &run.in(node, 2) : nullptr),
        map_(a_.features, TwinRun::has(node, 1) ? &run.in(node, 1) : nullptr, a_.head_width),
        sizes_(linear_sizes(a_, static_cast<int64_t>(map_.mapped()))) {}

  const LinearSizes& sizes() const { return sizes_; }

  // What one head of one item has of keys and their sums.
  void take(size_t b, size_t h) {
    b_ = b, h_ = h;
    keys_.clear();
    before_.clear();
    for (size_t j = 0; j < a_.keys; ++j) {
      const bool kept = mask_ == nullptr || mask_->bit(b * ((size_t{a_.keys} + 31) / 32), j);
      keys_.push_back(map_.key(x_, head_element(a_.k, b, h, j), kept));
    }
    const TwinKeys all{[&](size_t j) { return !keys_[j].peak.is_negative_infinity(); },
                       [&](size_t j) { return keys_[j].peak; },
                       [&](size_t j, size_t n, Real peak) { return map_.faded(keys_[j], n, peak); },
                       [&](size_t j, size_t e) { return x_[head_element(a_.v, b, h, j) + e]; },
                       map_.count(),
                       a_.value_width,
                       map_.fades(),
                       map_.has_one(),
                       map_.mapped() * (a_.value_width + 1)};
    std::vector<std::vector<Real>> chunks;
    for (size_t c = 0; c < sizes_.chunks; ++c) {
      const size_t first = std::min<size_t>(c * sizes_.chunk, a_.keys);
      chunks.push_back(chunk_sum(all, first, std::min<size_t>(first + sizes_.chunk, a_.keys)));
    }
    total = !causal() && chunks.size() == 1 ? chunks[0] : scanned(all, chunks, before_);
  }
  std::vector<Real> total;

  void attend(size_t i, Memory& y) const {
    const TwinFeatures q = map_.query(x_, head_element(a_.q, b_, h_, i));
    const size_t chunk = causal() ? i / sizes_.chunk : 0, width = a_.value_width;
    const std::vector<Real>& state = causal() ? before_[chunk] : total;
    std::vector<Real> sum(width + 1, Real(0.0f));
    for (size_t n = 0; n < map_.count(); ++n) {
      for (size_t e = 0; e <= width; ++e) sum[e] += q.values[n] * state[n * (width + 1) + e];
    }
    for (size_t j = chunk * sizes_.chunk; causal() && j < std::min<size_t>(i + 1, a_.keys); ++j) {
      if (keys_[j].peak.is_negative_infinity()) continue;
      const Real weight = weight_of(q, j, map_.fades() ? state.back() : Real(0.0f));
      for (size_t e = 0; e < width; ++e) {
        sum[e] += weight * x_[head_element(a_.v, b_, h_, j) + e];
      }
      sum[width] += weight;
    }
    const size_t at = head_element(a_.y, b_, h_, i);
    for (size_t e = 0; e < width; ++e) {
      y.put(at + e, online_result(sum[e], sum[width] + a_.features.epsilon));
    }
  }
  void put_weights(size_t i, Memory& y) const {
    const TwinFeatures q = map_.query(x_, head_element(a_.q, b_, h_, i));
    const size_t row = (b_ * a_.head_count + h_ - a_.first_head) * a_.queries + i;
    RowSum sum(a_.keys, sizes_.features);
    for (size_t j = 0; j < a_.keys; ++j) {
      const bool seen = (!causal() || j <= i) && !keys_[j].peak.is_negative_infinity();
      const Real weight = seen ? weight_of(q, j, total.back()) : Real(0.0f);
      y.put(row * a_.keys + j, weight);
      sum.add(j, weight);
    }
    const Real all = sum.total() + a_.features.epsilon;
    for (size_t j = 0; j < a_.keys; ++j) {
      y.put(row * a_.keys + j, online_result(y[row * a_.keys + j], all));
    }
  }

 private:
  bool causal() const { return a_.causal == LinearAttentionAttrs::Causal::kYes; }
  Real weight_of(const TwinFeatures& q, size_t j, Real peak) const {
    Real weight = 0.0f;
    for (size_t n = 0; n < map_.count(); ++n) {
      weight += q.values[n] * map_.faded(keys_[j], n, peak);
    }
    return weight;
  }

  const LinearAttentionAttrs& a_;
  const Memory& x_;
  const Memory* mask_;
  FeatureMap map_;
  LinearSizes sizes_;
  size_t b_ = 0, h_ = 0;
  std::vector<TwinFeatures> keys_;
  std::vector<std::vector<Real>> before_;
};

bool twin_linear_step(TwinRun& run, const Node& node, const LinearStepAttrs& a) {
  const Memory& x = run.in(node, 0);
  const FeatureMap map(a.features, TwinRun::has(node, 1) ? &run.in(node, 1) : nullptr,
                       a.head_width);
  const Memory& ancestry = run.in(node, 2);
  const TwinSlots slots{run.in(node, 4)};
  Memory &y = run.out(node, 0), &states = run.out(node, 1);
  const size_t width = size_t{a.value_width} + 1, words = map.count() * width + 2;
  for (size_t unit = 0; unit < slots.live() * a.heads; ++unit) {
    const size_t slot = unit / a.heads, head = unit % a.heads, row = slots.row(slot);
    const uint32_t position = slots.position(slot);
    const size_t at = slot * x.width();
    const TwinFeatures q = map.query(x, at + a.q_offset + head * a.head_width);
    const TwinFeatures k = map.key(x, at + a.k_offset + head * a.head_width, true);
    const size_t owner =
        position == 0 ? row - row % a.beams : ancestry.words[row * a.capacity + position - 1];
    const auto line = [&](size_t of, uint32_t t) {
      return ((2 * of + (t & 1)) * a.heads + head) * words;
    };
    const size_t from = line(owner, position + 1), to = line(row, position);
    Real peak = 0.0f, fade = 1.0f;
    if (map.fades()) {
      const Real before = position == 0 ? Real(kLowestReal) : states[from + words - 1];
      peak = keep_max(before, k.peak);
      fade = online_fade(before, peak, 1.0f);
    }
    std::vector<Real> sums(width, Real(0.0f));
    for (size_t n = 0; n < map.count(); ++n) {
      const bool one = map.has_one() && n + 1 == map.count();
      const Real key = map.faded(k, n, peak);
      for (size_t e = 0; e < width; ++e) {
        const bool last = e == a.value_width;
        const Real v = last ? Real(1.0f) : x[at + a.v_offset + head * a.value_width + e];
        const Real before = position == 0 ? Real(0.0f) : states[from + n * width + e];
        const Real now = before * (one ? Real(1.0f) : fade) + key * v;
        states.put(to + n * width + e, now);
        sums[e] += q.values[n] * now;
      }
    }
    states.put(to + words - 1, peak);
    for (size_t e = 0; e < a.value_width; ++e) {
      y.put(unit * a.value_width + e,
            online_result(sums[e], sums[a.value_width] + a.features.epsilon));
    }
  }
  return true;
}

bool twin_linear_attention(TwinRun& run, const Node& node) {
  const auto& form = attrs_of<LinearAttentionNodeAttrs>(node);
  if (const auto* step = std::get_if<LinearStepAttrs>(&form)) {
    return twin_linear_step(run, node, *step);
  }
  const auto& a = std::get<LinearAttentionAttrs>(form);
  TwinLinear twin(run, node, a);
  Memory& y = run.out(node);
  const auto has_output = [&](size_t i) { return node.outputs[i] != kNoTensor; };
  Memory* states = has_output(1) ? &run.out(node, 1) : nullptr;
  Memory* weights = has_output(2) ? &run.out(node, 2) : nullptr;
  for (size_t unit = 0; unit < size_t{a.batch} * a.heads; ++unit) {
    const size_t b = unit / a.heads, h = unit % a.heads;
    twin.take(b, h);
    for (size_t i = 0; i < a.queries; ++i) twin.attend(i, y);
    const bool chosen = h >= a.first_head && h - a.first_head < a.head_count;
    for (size_t i = 0; weights != nullptr && chosen && i < a.queries; ++i) {
      twin.put_weights(i, *weights);
    }
    for (size_t copy = 0; states != nullptr && copy < 2; ++copy) {
      const size_t words = twin.total.size(), line = a.heads * words;
      for (size_t w = 0; w < words; ++w) {
        states->put((b * 2 * a.beams + copy) * line + h * words + w, twin.total[w]);
      }
    }
  }
  return true;
}

bool twin_sequence_projection(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<SequenceProjectionAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  size_t to = 0;
  for (const bool values : {false, true}) {
    const Memory& matrix = run.in(node, values ? 2 : 1);
    const HeadLayout& layout = values ? a.v : a.k;
    const bool per_head = a.matrices == SequenceProjectionAttrs::Matrices::kPerHead;
    for (size_t unit = 0; unit < size_t{a.batch} * a.heads; ++unit) {
      const size_t b = unit / a.heads, h = unit % a.heads;
      const size_t base = per_head ? h * a.projected * a.reach : 0;
      const TwinKeys keys{[&](size_t j) {
                            const size_t words = (size_t{a.keys} + 31) / 32;
                            return !TwinRun::has(node, 3) || run.in(node, 3).bit(b * words, j);
                          },
                          [](size_t) { return Real(0.0f); },
                          [&](size_t j, size_t n, Real) { return matrix[base + n * a.reach + j]; },
                          [&](size_t j, size_t e) { return x[head_element(layout, b, h, j) + e]; },
                          a.projected,
                          values ? a.value_width : a.head_width,
                          false,
                          false,
                          0};
      std::vector<std::vector<Real>> chunks, before;
      for (size_t first = 0; first < a.keys; first += kSumChunk) {
        chunks.push_back(chunk_sum(keys, first, std::min<size_t>(first + kSumChunk, a.keys)));
      }
      const auto sum = chunks.size() == 1 ? chunks[0] : scanned(keys, chunks, before);
      for (const Real word : sum) y.put(to++, word);
    }
  }
  return true;
}

constexpr TwinOp kLinearTwins[] = {{"linear_attention", twin_linear_attention},
                                   {"sequence_projection", twin_sequence_projection}};

}  // namespace

std::span<const TwinOp> linear_twins() {
  return kLinearTwins;
}

}  // namespace vkformer::conformance
