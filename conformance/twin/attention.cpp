// Attention in one pass over tiles of keys, its weights, and the scores of recurrent translation.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "conformance/twin/score_terms.h"
#include "conformance/twin/twin_walk.h"
#include "ops/additive_attention.h"
#include "ops/attention_step.h"
#include "ops/attention_strategy.h"
#include "ops/attention_weights.h"
#include "ops/chunk_attention.h"
#include "ops/mix_rounds.h"
#include "params/recurrent.h"

namespace vkformer::conformance {
namespace {

// The scores of a node before the softmax.
class TwinScores {
 public:
  TwinScores(const Memory& q, const Memory& kv, const Memory& words, const AttentionAttrs& a,
             TwinTerms::Blocks blocks)
      : terms{words, a.terms, a.heads, a.queries, a.keys, Real(1.0f) / (1.0f / a.temperature),
              blocks},
        inverse_temperature(1.0f / a.temperature),
        q_(q),
        kv_(kv),
        a_(a),
        quads_(starts_in_quads(a)) {}

  TwinTerms terms;
  Real inverse_temperature;

  // `positions_first`: products with positions come before those with the key.
  Real score(size_t b, size_t h, size_t i, size_t j, bool positions_first) const {
    const size_t q = head_element(a_.q, b, h, i), width = a_.head_width;
    const size_t k = head_element(a_.k, b, h / (a_.heads / a_.kv_heads), j);
    const auto query = [&](size_t e) { return q_[q + e]; };
    const auto key = [&](size_t e) { return kv_[k + e]; };
    Real value = 0.0f;
    if (a_.relative.kinds != 0 && positions_first) value = add_positions(value, q, h, i, j, true);
    if (has(VKF_RELATIVE_BIASES) && positions_first) {
      // Products with the bias are a sum of their own.
      const size_t bias = bias_at(h);
      value = add_products(value, width, quads_, query, key);
      value += add_products(
          0.0f, width, quads_, [&](size_t e) { return kv_[bias + e]; }, key);
    } else {
      const size_t bias = bias_at(h);
      const bool biased = has(VKF_RELATIVE_BIASES);
      value = add_products(
          value, width, quads_,
          [&](size_t e) { return biased ? q_[q + e] + kv_[bias + e] : q_[q + e]; }, key);
    }
    if (a_.relative.kinds != 0 && !positions_first) value = add_positions(value, q, h, i, j, false);
    if (has(VKF_RELATIVE_PRODUCTS) && !positions_first) value += product(b, h, i, j);
    if (has(VKF_RELATIVE_QUERIES)) {
      const size_t row = table_row(1, h, i, j);
      value = add_products(
          value, width, quads_, [&](size_t e) { return kv_[row + e]; }, key);
    }
    if (has(VKF_RELATIVE_PRODUCTS) && positions_first) value += product(b, h, i, j);
    value = soft_capped(value * *a_.scale, a_.softcap) + terms.bias(b, h, i, j);
    return terms.allowed(b, h, i, j) ? value : Real::of_bits(kSignBit | kInfinityBits);
  }
  // Of a position, column e.
  Real relative_value(size_t h, size_t i, size_t j, size_t e) const {
    const size_t biases = has(VKF_RELATIVE_BIASES) ? 2 * size_t{a_.heads} * a_.head_width : 0;
    const size_t row = distance(i, j) * rows() + (rows() == 1 ? 0 : h);
    return kv_[bias_at(0) + biases + row * a_.value_width + e];
  }
  bool has(uint32_t kind) const { return (a_.relative.kinds & kind) != 0; }

 private:
  size_t rows() const { return has(VKF_RELATIVE_ONE_HEAD) ? 1 : a_.heads; }
  size_t distances() const { return 2 * size_t{a_.relative.reach} + 1; }
  size_t distance(size_t i, size_t j) const {
    const auto reach = static_cast<int64_t>(a_.relative.reach);
    const int64_t d = static_cast<int64_t>(j) - static_cast<int64_t>(i) - a_.terms.causal_offset;
    return static_cast<size_t>(std::clamp(d, -reach, reach) + reach);
  }
  // Of keys (0) or queries (1) of positions.
  size_t table_row(size_t table, size_t h, size_t i, size_t j) const {
    const size_t row = distance(i, j) * rows() + (rows() == 1 ? 0 : h);
    return a_.relative.offset + (table * distances() * rows() + row) * a_.head_width;
  }
  size_t bias_at(size_t h) const {
    const size_t tables = has(VKF_RELATIVE_QUERIES) ? 2 : 1;
    return a_.relative.offset + (tables * distances() * rows() + h) * a_.head_width;
  }
  Real product(size_t b, size_t h, size_t i, size_t j) const {
    const size_t biases = has(VKF_RELATIVE_BIASES) ? 2 * size_t{a_.heads} * a_.head_width : 0;
    const size_t key = (b * a_.heads + h) * a_.keys + j;
    return kv_[bias_at(0) + biases + key * distances() + distance(i, j)];
  }
  // (q + c) . r. In tiles the products with c are a separate sum, but where keys may be anywhere.
  // There each key has its own row, element by element.
  Real add_positions(Real value, size_t q, size_t h, size_t i, size_t j, bool tiled) const {
    const size_t row = table_row(0, h, i, j), width = a_.head_width;
    const size_t bias = bias_at(h) + size_t{a_.heads} * width;
    const bool biased = has(VKF_RELATIVE_BIASES);
    if (tiled && is_sparse(a_.terms)) {
      for (size_t e = 0; e < width; ++e) {
        value += (q_[q + e] + (biased ? kv_[bias + e] : Real(0.0f))) * kv_[row + e];
      }
      return value;
    }
    const auto place = [&](size_t e) { return kv_[row + e]; };
    value = add_products(
        value, width, quads_,
        [&](size_t e) { return biased && !tiled ? q_[q + e] + kv_[bias + e] : q_[q + e]; }, place);
    if (!biased || !tiled) return value;
    return value + add_products(
                       0.0f, width, quads_, [&](size_t e) { return kv_[bias + e]; }, place);
  }

  const Memory &q_, &kv_;
  const AttentionAttrs& a_;
  bool quads_;
};

// Sums of one query: over tiles of keys, each lane's weights by themselves.
struct TwinQuery {
  TwinQuery(size_t lanes, size_t width, Real sink)
      : totals(RowSum::of_lanes(lanes)), sums(width, Real(0.0f)) {
    const bool none = sink.is_negative_infinity();
    highest = none ? Real(kLowestReal) : sink;
    totals.lane(0) = none ? 0.0f : 1.0f;
  }
  void fade(Real by) {
    for (size_t lane = 0; lane < totals.lanes(); ++lane) totals.lane(lane) *= by;
    for (Real& sum : sums) sum *= by;
  }

  Real highest;
  RowSum totals;
  std::vector<Real> sums;
};

void attend_tiles(const TwinScores& scores, const AttentionAttrs& a, const Memory& kv,
                  const size_t (&place)[3], Real* y) {
  const auto [b, h, i] = place;
  const size_t group = a.queries == 1 ? 1 : kTiledQueries;
  const size_t first = i / group * group, last = std::min<size_t>(first + group, a.queries) - 1;
  const TwinWalk walk(scores.terms, b, h, {first, last});
  if (counts_keys(a)) {
    y[0] = static_cast<float>(walk.count());
    return;
  }
  TwinQuery query(tiled_local_size(twin_caps(), a), a.value_width, scores.terms.sink(h));
  const size_t lanes = query.totals.lanes(), kv_head = h / (a.heads / a.kv_heads);
  std::vector<Real> weight(lanes);
  for (size_t tile = 0; tile < walk.count(); tile += lanes) {
    const size_t count = std::min(lanes, walk.count() - tile);
    const Real before = query.highest;
    for (size_t n = 0; n < count; ++n) {
      const Real score = scores.score(b, h, i, walk.key(tile + n), true);
      weight[n] = walk.counts(tile + n, i) ? score + walk.bias(tile + n)
                                           : Real::of_bits(kSignBit | kInfinityBits);
      query.highest = keep_max(query.highest, weight[n]);
    }
    query.fade(online_fade(before, query.highest, scores.inverse_temperature));
    std::vector<size_t> seen;
    for (size_t n = 0; n < lanes; ++n) {
      const bool masked = n >= count || weight[n].is_negative_infinity();
      if (!masked) {
        weight[n] = exp_nonpositive((weight[n] - query.highest) * scores.inverse_temperature);
        seen.push_back(n);
      }
      query.totals.lane(n) += masked ? Real(0.0f) : weight[n];
    }
    for (size_t e = 0; e < a.value_width; ++e) {
      for (const size_t n : seen) {
        query.sums[e] += weight[n] * kv[head_element(a.v, b, kv_head, walk.key(tile + n)) + e];
      }
      if (!scores.has(VKF_RELATIVE_VALUES)) continue;
      for (const size_t n : seen) {
        query.sums[e] += weight[n] * scores.relative_value(h, i, walk.key(tile + n), e);
      }
    }
  }
  const Real total = query.totals.total();
  for (size_t e = 0; e < a.value_width; ++e) y[e] = online_result(query.sums[e], total);
}

bool twin_attention(TwinRun& run, const Node& node) {
  const auto& form = attrs_of<AttentionNodeAttrs>(node);
  if (std::holds_alternative<AttentionStepAttrs>(form)) return twin_attention_step(run, node);
  const auto& a = std::get<AttentionAttrs>(form);
  const Memory &q = run.in(node, 0), &kv = run.in(node, 1);
  const TwinScores scores(q, kv, TwinRun::has(node, 2) ? run.in(node, 2) : kv, a,
                          TwinTerms::Blocks::kWalked);
  Memory& y = run.out(node);
  std::vector<Real> row(counts_keys(a) ? 1 : a.value_width);
  for (size_t r = 0; r < size_t{a.batch} * a.heads * a.queries; ++r) {
    const size_t place[] = {r / a.queries / a.heads, r / a.queries % a.heads, r % a.queries};
    attend_tiles(scores, a, kv, place, row.data());
    const size_t at = head_element(a.y, place[0], place[1], place[2]);
    for (size_t e = 0; e < row.size(); ++e) y.put(at + e, row[e]);
  }
  return true;
}

bool twin_attention_weights(TwinRun& run, const Node& node) {
  const auto& chosen = attrs_of<AttentionWeightsAttrs>(node);
  const AttentionAttrs& a = chosen.attention;
  const Memory &q = run.in(node, 0), &kv = run.in(node, 1);
  const TwinScores scores(q, kv, TwinRun::has(node, 2) ? run.in(node, 2) : kv, a,
                          TwinTerms::Blocks::kFound);
  const bool raw = chosen.result == AttentionWeightsAttrs::Result::kScores;
  Memory& y = run.out(node);
  const size_t keys = a.keys;
  for (size_t r = 0; r < y.words.size() / keys; ++r) {
    const size_t b = r / a.queries / chosen.head_count,
                 h = chosen.first_head + r / a.queries % chosen.head_count, base = r * keys;
    Real highest = kLowestReal;
    std::vector<Real> score(keys);
    for (size_t j = 0; j < keys; ++j) {
      score[j] = scores.score(b, h, r % a.queries, j, false);
      highest = keep_max(highest, score[j]);
      const Real scaled = raw ? score[j] * scores.inverse_temperature : score[j];
      y.put(base + j, score[j].is_negative_infinity() ? score[j] : scaled);
    }
    if (raw) continue;
    const Real sink = scores.terms.sink(h), inverse = scores.inverse_temperature;
    highest = sink.is_nan() ? sink : keep_max(highest, sink);
    RowSum total(4 * keys);
    if (!sink.is_negative_infinity()) total.add(0, exp_nonpositive((sink - highest) * inverse));
    for (size_t j = 0; j < keys; ++j) {
      if (score[j].is_negative_infinity()) continue;
      const Real weight = exp_nonpositive((score[j] - highest) * inverse);
      total.add(j, weight);
      y.put(base + j, weight);
    }
    const Real sum = total.total();
    for (size_t j = 0; j < keys; ++j) {
      const bool masked = score[j].is_negative_infinity();
      y.put(base + j, masked ? Real(0.0f) : online_result(y[base + j], sum));
    }
  }
  return true;
}

// Which keys a query of additive attention sees, and where they stand in their sentence.
struct TwinSentence {
  const Memory* mask;  // or null
  size_t first, keys;  // the item's words begin at `first`

  bool real(size_t j) const { return mask == nullptr || mask->bit(first, j); }
  size_t rank(size_t j) const {
    size_t count = 0;
    for (size_t i = 0; i < j; ++i) count += real(i) ? 1 : 0;
    return count;
  }
};

bool twin_additive_attention(TwinRun& run, const Node& node) {
  using Attrs = AdditiveAttentionAttrs;
  const auto& a = attrs_of<Attrs>(node);
  const Memory &q = run.in(node, 0), &kv = run.in(node, 1);
  const Memory& aux = TwinRun::has(node, 2) ? run.in(node, 2) : q;
  Memory& y = run.out(node);
  const auto keys = static_cast<size_t>(kv.shape[1]);
  const size_t line = kv.width(), stride = q.width(), values = a.value_width;
  const size_t rows = run.is_step() ? TwinSlots{run.in(node, 3)}.live() : q.rows();
  for (size_t r = 0; r < rows; ++r) {
    size_t item = r / a.queries, position = a.first + r % a.queries;
    if (run.is_step()) {
      const TwinSlots slots{run.in(node, 3)};
      item = slots.row(r) / a.queries;
      position = slots.position(r);
    }
    const TwinSentence sentence{a.masked ? &aux : nullptr, item * ((keys + 31) / 32), keys};
    const bool predictive = a.window == Attrs::Window::kPredictive;
    Real center = static_cast<float>(position);
    if (predictive)
      center = Real(static_cast<float>(sentence.rank(keys))) * q[r * stride + a.width];
    const auto distance = [&](size_t j) {
      return Real(static_cast<float>(sentence.rank(j))) - center;
    };
    const Real hidden = Real::of_bits(kSignBit | kInfinityBits);
    const auto score = [&](size_t j) -> Real {
      const bool far =
          a.window != Attrs::Window::kNone && magnitude(distance(j)) > static_cast<float>(a.reach);
      if (!sentence.real(j) || far) return hidden;
      if (a.score == Attrs::Score::kLocation) {
        const size_t place = sentence.rank(j);
        return place < a.width ? q[r * stride + place] : hidden;
      }
      Real sum = 0.0f;
      for (size_t i = 0; i < a.width; ++i) {
        const Real x = q[r * stride + i], k = kv[(item * keys + j) * line + i];
        sum += a.score == Attrs::Score::kDot
                   ? x * k
                   : aux[a.v_offset + i] * activated(x + k, ActivationKind::kTanh);
      }
      return sum;
    };
    const size_t row_at = r * (values + keys), at = row_at + values;
    const Real inverse = 1.0f / a.temperature;
    Real highest = kLowestReal;
    std::vector<Real> weight(keys);
    for (size_t j = 0; j < keys; ++j) {
      weight[j] = score(j);
      y.put(at + j, weight[j]);
      highest = keep_max(highest, weight[j]);
    }
    if (a.result == Attrs::Result::kScores) continue;
    RowSum total(keys);
    for (size_t j = 0; j < keys; ++j) {
      if (weight[j].is_negative_infinity()) continue;
      weight[j] = exp_nonpositive((weight[j] - highest) * inverse);
      total.add(j, weight[j]);
    }
    const Real sum = total.total();
    for (size_t j = 0; j < keys; ++j) {
      if (y[at + j].is_negative_infinity()) continue;
      const Real ratio = Real(2.0f) * distance(j) / static_cast<float>(a.reach);
      const Real share = predictive ? exp_nonpositive(Real(-0.5f) * ratio * ratio) : Real(1.0f);
      weight[j] = online_result(weight[j], sum) * share;
    }
    for (size_t c = 0; c < values; ++c) {
      Real context = 0.0f;
      for (size_t j = 0; j < keys; ++j) {
        const bool masked = y[at + j].is_negative_infinity();
        const Real value = kv[(item * keys + j) * line + line - values + c];
        context += masked ? Real(0.0f) : weight[j] * value;
      }
      y.put(row_at + c, context);
    }
    for (size_t j = 0; j < keys; ++j) {
      y.put(at + j, y[at + j].is_negative_infinity() ? Real(0.0f) : weight[j]);
    }
  }
  return true;
}

// One query of chunk attention, which takes keys one by one.
struct TwinChunkQuery {
  explicit TwinChunkQuery(size_t width) : sums(width, Real(0.0f)) {}
  Real highest = kLowestReal, total = 0.0f;
  std::vector<Real> sums;

  void add(Real score, const Memory& x, size_t values) {
    const Real now = keep_max(highest, score);
    if (now > highest) {
      const Real fade = online_fade(highest, now, 1.0f);
      total *= fade;
      for (Real& sum : sums) sum *= fade;
      highest = now;
    }
    if (score.is_negative_infinity()) return;
    const Real weight = exp_nonpositive((score - now) * 1.0f);
    total += weight;
    for (size_t e = 0; e < sums.size(); ++e) sums[e] = weight * x[values + e] + sums[e];
  }
};

bool twin_chunk_attention(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<ChunkAttentionAttrs>(node);
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const bool shared = a.keys == ChunkAttentionAttrs::Keys::kQueries;
  const bool causal = a.causal == ChunkAttentionAttrs::Causal::kYes, several = a.rounds > 1;
  const size_t places = size_t{a.rounds} * a.tokens, chunks = places / a.chunk;
  const HeadLayout to = several ? separate_heads(a.heads, a.rounds * a.tokens, a.value_width + 2, 0)
                                : merged_rows(a.tokens, a.heads * a.value_width, 0, a.value_width);
  const Real scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_width)));
  for (size_t n = 0; n < size_t{a.batch} * a.heads * places; ++n) {
    const size_t unit = n / places, b = unit / a.heads, h = unit % a.heads, place = n % places;
    const auto position = [&](size_t at) -> size_t {
      return TwinRun::has(node, 1) ? run.in(node, 1).words[unit * places + at] : at % a.tokens;
    };
    const size_t own = position(place), q = head_element(a.q, b, h, own);
    TwinChunkQuery query(a.value_width);
    for (size_t w = 0; w <= size_t{a.before} + a.after; ++w) {
      const int64_t far = static_cast<int64_t>(w) - a.before;
      const int64_t offset = std::abs(far) < static_cast<int64_t>(chunks) ? far : 0;
      const auto chunk =
          static_cast<size_t>(static_cast<int64_t>(place / a.chunk + chunks) + offset) % chunks;
      for (size_t m = 0; m < a.chunk; ++m) {
        const size_t at = position(chunk * a.chunk + m);
        const bool kept =
            !TwinRun::has(node, 2) || run.in(node, 2).bit(b * ((size_t{a.tokens} + 31) / 32), at);
        const bool self = shared && at == own;
        if (!(kept && (!causal || at <= own)) && !self) continue;
        const size_t k = head_element(a.k, b, h, at);
        Real product = 0.0f, squares = 0.0f;
        for (size_t e = 0; e < a.head_width; ++e) {
          product = x[q + e] * x[k + e] + product;
          squares = x[k + e] * x[k + e] + squares;
        }
        if (shared) product = product / root(squares / static_cast<float>(a.head_width) + 1e-6f);
        query.add(self ? Real(-1e5f) : product * scale, x, head_element(a.v, b, h, at));
      }
    }
    const size_t y_at = head_element(to, b, h, place / a.tokens * a.tokens + own);
    for (size_t e = 0; e < a.value_width; ++e) {
      y.put(y_at + e, online_result(query.sums[e], query.total));
    }
    if (!several) continue;
    y.put(y_at + a.value_width, query.highest);
    y.put(y_at + a.value_width + 1, query.total);
  }
  return true;
}

bool twin_mix_rounds(TwinRun& run, const Node& node) {
  const Memory& x = run.in(node, 0);
  Memory& y = run.out(node);
  const auto heads = static_cast<size_t>(x.shape[1]), rounds = static_cast<size_t>(x.shape[2]),
             tokens = static_cast<size_t>(x.shape[3]);
  const size_t pitch = x.width(), width = pitch - 2;
  for (size_t at = 0; at < y.words.size(); ++at) {
    const size_t row = at / width, e = at % width, head = row % heads;
    const size_t token = row / heads % tokens, batch = row / heads / tokens;
    const auto base = [&](size_t r) {
      return (((batch * heads + head) * rounds + r) * tokens + token) * pitch;
    };
    Real highest = kLowestReal, sum = 0.0f, total = 0.0f;
    for (size_t r = 0; r < rounds; ++r) highest = keep_max(highest, x[base(r) + width]);
    for (size_t r = 0; r < rounds; ++r) {
      const Real weight = x[base(r) + width + 1] * online_fade(x[base(r) + width], highest, 1.0f);
      total += weight;
      sum = weight * x[base(r) + e] + sum;
    }
    y.put(at, online_result(sum, total));
  }
  return true;
}

constexpr TwinOp kAttentionTwins[] = {{"additive_attention", twin_additive_attention},
                                      {"attention", twin_attention},
                                      {"attention_weights", twin_attention_weights},
                                      {"chunk_attention", twin_chunk_attention},
                                      {"mix_rounds", twin_mix_rounds}};

}  // namespace

std::span<const TwinOp> attention_twins() {
  return kAttentionTwins;
}

}  // namespace vkformer::conformance
