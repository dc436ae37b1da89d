// Attention of one query over a cache. Its tiles begin where those of a prompt begin. Parts of the
// keys are merged in order.
#include "ops/attention_step.h"

#include <bit>
#include <cmath>

#include "conformance/twin/score_terms.h"
#include "ops/attention_strategy.h"
#include "ops/cache_format.h"

namespace vkformer::conformance {
namespace {

// Keys that one part has, and how many parts there are.
struct TwinParts {
  size_t keys = 0, count = 1;
};

class TwinStep {
 public:
  TwinStep(TwinRun& run, const Node& node)
      : a_(std::get<AttentionStepAttrs>(attrs_of<AttentionNodeAttrs>(node))),
        q_(run.in(node, 0)),
        kv_(run.in(node, 1)),
        aux_(TwinRun::has(node, 2) ? &run.in(node, 2) : nullptr),
        slots_{run.in(node, 3)},
        lines_(static_cast<size_t>(kv_.shape[1])),
        positions_(a_.positions == 0 ? lines_ : a_.positions),
        cross_(a_.source == AttentionStepAttrs::Source::kCross),
        format_(cache_format(run.graph().tensor(node.inputs[1]),
                             int64_t{a_.kv_heads} * (a_.head_width + a_.value_width))
                    .value()) {
    const double root = std::sqrt(static_cast<double>(a_.head_width));
    scale_ = a_.scale.value_or(static_cast<float>(1.0 / root));
  }

  void attend(size_t slot, size_t head, Memory& y) {
    row_ = slots_.row(slot);
    position_ = slots_.position(slot);
    find_keys();
    const size_t end = sinks_seen_ + recent_end_ - recent_begin_;
    const TwinParts parts = split();
    const size_t width = a_.value_width, at = (slot * a_.heads + head) * width;
    if (parts.count == 1 && parts.keys == 0) {
      const Part all = part(slot, head, 0, end, true);
      for (size_t e = 0; e < width; ++e) y.put(at + e, online_result(all.sums[e], all.total));
      return;
    }
    std::vector<Part> found;
    for (size_t n = 0; n < parts.count; ++n) {
      const size_t first = std::min(n * parts.keys, end);
      found.push_back(part(slot, head, first, std::min(first + parts.keys, end), n == 0));
    }
    Real highest = kLowestReal;
    for (const Part& p : found) {
      if (p.total.bits() != 0) highest = keep_max(highest, p.highest);
    }
    for (size_t e = 0; e < width; ++e) {
      Real sum = 0.0f, total = 0.0f;
      for (const Part& p : found) {
        if (p.total.bits() == 0) continue;
        const Real fade = p.highest < highest ? online_fade(p.highest, highest, 1.0f) : Real(1.0f);
        total += p.total * fade;
        sum += p.sums[e] * fade;
      }
      y.put(at + e, online_result(sum, total));
    }
  }

 private:
  struct Part {
    Real highest, total;
    std::vector<Real> sums;
  };

  void find_keys() {
    sinks_seen_ = first_sink_ = recent_begin_ = 0;
    recent_end_ = lines_;
    if (cross_) return;
    const bool rolled = a_.context != 0 && position_ >= a_.context;
    recent_end_ = std::min<size_t>(position_ + 1, positions_);
    size_t seen = rolled ? a_.context - a_.sinks : position_ + 1;
    if (a_.window != 0) seen = std::min<size_t>(seen, a_.window);
    recent_begin_ = std::min(position_ + 1 - seen, recent_end_);
    if (!rolled) return;
    if (a_.window != 0 && a_.window < a_.context) {
      first_sink_ = std::min(a_.sinks, a_.context - a_.window);
    }
    sinks_seen_ = a_.sinks - first_sink_;
  }
  // A prompt's tiles begin at the first key that a group of its queries sees.
  size_t lead(size_t n) const {
    if (n != 0 || sinks_seen_ != 0 || cross_) return 0;
    const size_t end = position_ - position_ % kTiledQueries + 1;
    const size_t begin = a_.window != 0 && end > a_.window ? end - a_.window : 0;
    return recent_begin_ - std::min(begin, recent_begin_);
  }
  size_t most_keys() const {
    size_t keys = positions_;
    if (a_.context > 0) keys = std::min<size_t>(keys, a_.context);
    return a_.window > 0 ? std::min<size_t>(keys, a_.window) : keys;
  }
  // Heads that one workgroup takes.
  size_t folded() const {
    const size_t shared = a_.heads / a_.kv_heads;
    size_t heads = std::min<size_t>(4, shared);
    while (shared % heads != 0) --heads;
    return heads;
  }
  TwinParts split() const {
    constexpr size_t kMostParts = 64;
    const size_t most = most_keys(), least = a_.heads / folded() >= 4 ? 2048 : 256;
    const size_t keys = std::max(least, std::bit_ceil((most + kMostParts - 1) / kMostParts));
    if (most <= keys) return {};
    return {keys, (most + keys - 1) / keys};
  }
  size_t lanes() const {
    const size_t parted = split().keys, keys = parted > 0 ? parted : most_keys();
    size_t n = attention_local_size(twin_caps(), a_.value_width);
    const auto rounds = [&] {
      const uint64_t columns = (a_.value_width + n - 1) / n;
      return (keys / n + 1) * (1 + a_.head_width * folded() + n * (2 + columns * folded()));
    };
    while (rounds() > kMostSoftwareIterations && n < 128) n *= 2;
    return n;
  }

  // Element `column` of the line of key j.
  Real cached(size_t j, size_t column) const {
    size_t line = row_ / a_.beams * lines_ + j;
    if (!cross_) {
      const bool owned = aux_ != nullptr && a_.beams > 1;
      const size_t owner = owned ? aux_->words[row_ * positions_ + j] : row_;
      line = owner * lines_ + (j < lines_ ? j : a_.sinks + (j - a_.sinks) % (lines_ - a_.sinks));
    }
    const size_t words = kv_.width(), at = line * words;
    HostArithmetic h;
    if (format_ == CacheFormat::kF32) return kv_[at + column];
    if (format_ == CacheFormat::kF16) {
      return from_half(h, kv_.words[at + column / 2] >> (16 * (column % 2)) & 0xffffu);
    }
    const uint32_t byte = kv_.words[at + column / 4] >> (8 * (column % 4)) & 0xffu;
    return kv_[at + words / 9 * 8 + column / 32] * Real(static_cast<int8_t>(byte));
  }
  Real score(size_t slot, size_t head, size_t n) const {
    const bool sink = n < sinks_seen_;
    const size_t j = key_at(n), offset = sink && a_.sink_q_offset ? *a_.sink_q_offset : a_.q_offset;
    const size_t q = slot * q_.width() + offset + head * a_.head_width;
    const size_t column = head / (a_.heads / a_.kv_heads) * a_.head_width;
    const bool quads = (a_.head_width | a_.value_width) % 4 == 0;
    const Real product = add_products(
        0.0f, a_.head_width, quads, [&](size_t e) { return q_[q + e]; },
        [&](size_t e) { return cached(j, column + e); });
    const auto own = static_cast<int32_t>(sink ? a_.context - 1 : position_);
    const Real value = soft_capped(product * scale_, a_.softcap) +
                       distance_bias(head, static_cast<int32_t>(j) - own);
    const bool masked =
        cross_ && aux_ != nullptr && !aux_->bit(row_ / a_.beams * ((lines_ + 31) / 32), j);
    return masked ? Real::of_bits(kSignBit | kInfinityBits) : value;
  }
  size_t key_at(size_t n) const {
    return n < sinks_seen_ ? first_sink_ + n : recent_begin_ + (n - sinks_seen_);
  }
  Real distance_bias(size_t head, int32_t distance) const {
    Real value = 0.0f;
    if (a_.slopes_offset != VKF_NO_TERM) {
      value = (*aux_)[a_.slopes_offset + head] * static_cast<float>(distance);
    }
    if (a_.distance_offset != VKF_NO_TERM) {
      const auto reach = static_cast<int32_t>(aux_->words[a_.distance_offset]);
      const int32_t column = std::clamp(distance, -reach, reach) + reach;
      value += (*aux_)[a_.distance_offset + 1 + head * static_cast<size_t>(2 * reach + 1) +
                       static_cast<size_t>(column)];
    }
    return value;
  }

  // Of keys first ... end - 1, counted among those that are seen. Sinks belong to the first part.
  Part part(size_t slot, size_t head, size_t first, size_t end, bool with_sink) const {
    const bool sinks = with_sink && a_.sink_scores_offset != VKF_NO_TERM;
    const Real none = Real::of_bits(kSignBit | kInfinityBits);
    const Real sink = sinks ? (*aux_)[a_.sink_scores_offset + head] : none;
    const bool starts = !sink.is_negative_infinity();
    Part p{starts ? sink : Real(kLowestReal), 0.0f, std::vector<Real>(a_.value_width, Real(0.0f))};
    const size_t width = lanes(), before = lead(first);
    RowSum totals = RowSum::of_lanes(width);
    totals.lane(0) = starts ? 1.0f : 0.0f;
    const size_t values =
        a_.kv_heads * a_.head_width + head / (a_.heads / a_.kv_heads) * size_t{a_.value_width};
    std::vector<Real> weight(width);
    for (size_t tile = first; tile < end + before; tile += width) {
      Real now = p.highest;
      for (size_t lane = 0; lane < width; ++lane) {
        const bool exists = tile + lane >= first + before && tile + lane < end + before;
        weight[lane] = exists ? score(slot, head, tile + lane - before) : none;
        now = keep_max(now, weight[lane]);
      }
      const Real fade = now > p.highest ? online_fade(p.highest, now, 1.0f) : Real(1.0f);
      p.highest = now;
      for (Real& sum : p.sums) sum *= fade;
      for (size_t lane = 0; lane < width; ++lane) {
        const bool masked = weight[lane].is_negative_infinity();
        if (!masked) weight[lane] = exp_nonpositive((weight[lane] - now) * 1.0f);
        totals.lane(lane) = totals.lane(lane) * fade + (masked ? Real(0.0f) : weight[lane]);
        for (size_t e = 0; !masked && e < p.sums.size(); ++e) {
          p.sums[e] += weight[lane] * cached(key_at(tile + lane - before), values + e);
        }
      }
    }
    p.total = totals.total();
    return p;
  }

  const AttentionStepAttrs& a_;
  const Memory &q_, &kv_;
  const Memory* aux_;  // or null
  TwinSlots slots_;
  size_t lines_, positions_;
  bool cross_;
  CacheFormat format_;
  float scale_ = 1;
  // Of the query in hand: its row and position, and the keys that it sees.
  size_t row_ = 0, position_ = 0, sinks_seen_ = 0, first_sink_ = 0, recent_begin_ = 0,
         recent_end_ = 0;
};

}  // namespace

bool twin_attention_step(TwinRun& run, const Node& node) {
  const auto& a = std::get<AttentionStepAttrs>(attrs_of<AttentionNodeAttrs>(node));
  Memory& y = run.out(node);
  TwinStep step(run, node);
  const size_t live = TwinSlots{run.in(node, 3)}.live();
  for (size_t slot = 0; slot < live; ++slot) {
    for (size_t head = 0; head < a.heads; ++head) step.attend(slot, head, y);
  }
  return true;
}

}  // namespace vkformer::conformance
