// What experts and tokens are chosen by: scores, log-probabilities and the best of them.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "conformance/twin/twin_run.h"
#include "ops/expert_route.h"
#include "ops/node_attrs.h"
#include "ops/token_scores.h"
#include "params/sampling.h"

namespace vkformer::conformance {
namespace {

const Real kImpossible = Real::of_bits(kSignBit | kInfinityBits);

// Floats as unsigned integers of the same order: a NaN is above everything, the two zeros are
// equal.
uint32_t order_key(Real value) {
  if (value.is_nan()) return ~0u;
  const uint32_t bits = (value.bits() & ~kSignBit) == 0 ? 0 : value.bits();
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}
Real value_of_key(uint32_t key) {
  if (key == ~0u) return Real::of_bits(kNanBits);
  return Real::of_bits((key & kSignBit) != 0 ? key & ~kSignBit : ~key);
}

// The indices of the `count` largest keys, equal ones by ascending index.
std::vector<uint32_t> best_of(const std::vector<uint32_t>& keys, size_t count) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

// One row of logits and what experts are chosen by.
class TwinRoutes {
 public:
  TwinRoutes(const ExpertRouteAttrs& a, const Memory& logits, size_t base, const Memory* bias)
      : a_(a), logits_(logits), base_(base) {
    RowSum sum(a.experts, a.choices / 4 + 4);
    if (!sigmoid()) {
      top_ = highest_of(logits, base, a.experts);
      for (size_t i = 0; i < a.experts; ++i) sum.add(i, score(i));
      all_ = sum.total();
    }
    for (size_t i = 0; i < a.experts; ++i) {
      Real choice = sigmoid() ? score(i) : logits[base + i];
      if (bias != nullptr) choice = (sigmoid() ? choice : score(i) / all_) + (*bias)[i];
      keys_.push_back(order_key(choice));
    }
    if (a.groups > 1) drop_groups();
  }
  // The expert and its weight, K of them.
  std::vector<std::pair<uint32_t, Real>> chosen() const {
    std::vector<std::pair<uint32_t, Real>> list;
    Real sum = 0.0f;
    for (const uint32_t expert : best_of(keys_, a_.choices)) {
      list.emplace_back(expert, score(expert));
      sum += list.back().second;
    }
    const Real divisor = a_.normalize ? sum + a_.least_sum : all_;
    for (auto& [expert, weight] : list) weight = Real(a_.scale) * (weight / divisor);
    return list;
  }

 private:
  bool sigmoid() const { return a_.scores == ExpertRouteAttrs::Scores::kSigmoid; }
  Real score(size_t i) const {
    const Real x = logits_[base_ + i];
    if (!sigmoid()) return exp_of(x - top_);
    return x.is_nan() ? x : sigmoid_any(x);
  }
  // The two best of a group, added, say which groups stay.
  void drop_groups() {
    const size_t size = a_.experts / a_.groups;
    std::vector<uint32_t> groups;
    for (size_t g = 0; g < a_.groups; ++g) {
      uint32_t first = 0, second = 0;
      for (size_t i = g * size; i < (g + 1) * size; ++i) {
        if (keys_[i] > first) {
          second = first;
          first = keys_[i];
        } else {
          second = std::max(second, keys_[i]);
        }
      }
      groups.push_back(order_key(value_of_key(first) + value_of_key(second)));
    }
    const std::vector<uint32_t> best = best_of(groups, a_.kept_groups);
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (std::find(best.begin(), best.end(), i / size) == best.end()) keys_[i] = 0;
    }
  }

  const ExpertRouteAttrs& a_;
  const Memory& logits_;
  size_t base_;
  Real top_, all_ = 1.0f;
  std::vector<uint32_t> keys_;
};

bool twin_expert_route(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<ExpertRouteAttrs>(node);
  const Memory& logits = run.in(node, 0);
  Memory& y = run.out(node);
  const size_t width = logits.width(), always = width - a.experts, entries = a.choices + always;
  for (size_t r = 0; r < logits.rows(); ++r) {
    const size_t base = r * width;
    const TwinRoutes routes(a, logits, base, TwinRun::has(node, 1) ? &run.in(node, 1) : nullptr);
    const auto chosen = routes.chosen();
    for (size_t k = 0; k < entries; ++k) {
      const size_t at = 2 * (r * entries + k), other = a.experts + k - a.choices;
      const bool picked = k < a.choices;
      y.words[at] = picked ? chosen[k].first : static_cast<uint32_t>(other);
      const Real x = picked ? Real() : logits[base + other];
      y.put(at + 1, picked ? chosen[k].second : (x.is_nan() ? x : sigmoid_any(x)));
    }
  }
  return true;
}

// A row's log-softmax, as docs/numerics.md has it.
struct TwinLogSum {
  Real peak = 0.0f, log = 0.0f;
  Real of(Real logit) const { return (logit - peak) - log; }
};

constexpr size_t kSumLanes = 128;

TwinLogSum part_sum(const Memory& logits, size_t base, size_t count) {
  const Real peak = highest_of(logits, base, count);
  RowSum sum = RowSum::of_lanes(kSumLanes);
  for (size_t v = 0; v < count; ++v) {
    const Real x = logits[base + v];
    sum.add(v, x.is_negative_infinity() ? Real(0.0f) : exp_nonpositive(x - peak));
  }
  return {peak, sum.total()};
}

TwinLogSum log_sum_of(const Memory& logits, size_t base, size_t vocab) {
  std::vector<TwinLogSum> parts;
  TwinLogSum all{kImpossible, 0.0f};
  for (size_t first = 0; first < vocab; first += VKF_VOCAB_PART) {
    parts.push_back(
        part_sum(logits, base + first, std::min<size_t>(vocab - first, VKF_VOCAB_PART)));
    if (parts.back().peak > all.peak) all.peak = parts.back().peak;
  }
  all.log = parts[0].log;
  if (parts.size() > 1) {
    RowSum sum = RowSum::of_lanes(kSumLanes);
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool none = parts[i].peak.is_negative_infinity();
      sum.add(i, none ? parts[i].log : parts[i].log * exp_nonpositive(parts[i].peak - all.peak));
    }
    all.log = sum.total();
  }
  const bool empty = all.peak.is_negative_infinity() && !all.log.is_nan();
  all.log = empty ? Real::of_bits(kNanBits) : log_of_sum(all.log);
  return all;
}

SearchSettings settings_of(const Memory& memory) {
  SearchSettings s;
  std::memcpy(&s, memory.words.data(), sizeof(s));
  return s;
}
bool is_end(const SearchSettings& s, uint32_t token) {
  const auto* eos = reinterpret_cast<const uint32_t*>(s.eos);
  return std::find(eos, eos + s.eos_count, token) != eos + s.eos_count;
}

// Candidates that are sampled have no twin.
bool twin_token_candidates(TwinRun& run, const Node& node) {
  const auto& [p, from, choice] = attrs_of<CandidateAttrs>(node);
  if (choice == BeamChoice::kSampled) return false;
  const Memory &logits = run.in(node, 0), &suppress = run.in(node, 1);
  const TwinSlots slots{run.in(node, 2)};
  const SearchSettings s = settings_of(run.in(node, 3));
  Memory& y = run.out(node);
  const size_t vocab = p.vocab, words = (vocab + 31) / 32;
  const uint32_t length = slots.state.words[2] + 1;
  for (size_t slot = 0; slot < slots.live(); ++slot) {
    const size_t base = slot * vocab;
    TwinLogSum sum;
    if (from == ScoresFrom::kLogits) sum = log_sum_of(logits, base, vocab);
    const auto processed = [&](uint32_t token) -> Real {
      if (length + 1 == s.max_length && s.forced_last != VKF_NO_TOKEN) {
        return token == s.forced_last ? Real(0.0f) : kImpossible;
      }
      if (length == s.prompt_length && s.forced_first != VKF_NO_TOKEN) {
        return token == s.forced_first ? Real(0.0f) : kImpossible;
      }
      const bool first = length == s.prompt_length && suppress.bit(words, token);
      if (suppress.bit(0, token) || first) return kImpossible;
      if (length < s.min_length && is_end(s, token)) return kImpossible;
      return sum.of(logits[base + token]);
    };
    std::vector<uint32_t> keys;
    bool broken = sum.log.is_nan();
    for (uint32_t token = 0; token < vocab; ++token) {
      keys.push_back(order_key(processed(token)));
      broken = broken || (from != ScoresFrom::kLogits && logits[base + token].is_nan());
    }
    const std::vector<uint32_t> best = best_of(keys, p.candidates);
    for (size_t k = 0; k < p.candidates; ++k) {
      const size_t at = 2 * (slot * p.candidates + k);
      const uint32_t token = k < best.size() ? best[k] : 0;
      Real value = k < best.size() ? processed(token) : kImpossible;
      if (vocab > VKF_VOCAB_PART && k < best.size()) value = value_of_key(keys[token]);
      y.put(at, broken ? Real::of_bits(kNanBits) : value);
      y.words[at + 1] = token;
    }
  }
  return true;
}

// What the history of a row says of a token.
struct TwinMark {
  uint32_t times = 0;
  bool in_prompt = false, banned = false;
};

// Rows with rules on tokens have no twin.
bool twin_token_scores(TwinRun& run, const Node& node) {
  const auto& p = attrs_of<ScoresParams>(node);
  const Memory &logits = run.in(node, 0), &search = run.in(node, 1), &choice = run.in(node, 2);
  const TwinSlots slots{run.in(node, 3)};
  const SearchSettings s = settings_of(run.in(node, 4));
  Memory& y = run.out(node);
  const size_t vocab = p.search.vocab, words = (vocab + 31) / 32;
  const uint32_t length = slots.state.words[2] + 1;
  for (size_t slot = 0; slot < slots.live(); ++slot) {
    const uint32_t row = slots.row(slot), first = VKF_SLOT_START(slots.entry(slot));
    ChoiceRow c;
    std::memcpy(&c, &choice.words[row * VKF_CHOICE_WORDS], sizeof(c));
    if (c.rules != 0) return false;
    const uint32_t prompt = c.next == 0 ? s.prompt_length : length + 1 - c.next;
    if (length < prompt) continue;
    const uint32_t* history = &search.words[size_t{row} * p.search.capacity];
    std::vector<TwinMark> marks(vocab);
    for (uint32_t t = first; t < length; ++t) {
      if (history[t] >= vocab) continue;
      if (t < prompt) marks[history[t]].in_prompt = true;
      if (t >= prompt) ++marks[history[t]].times;
    }
    const uint32_t before = c.no_repeat - 1;
    for (uint32_t t = first; c.no_repeat != 0 && t + before < length; ++t) {
      const bool same = std::equal(history + t, history + t + before, history + length - before);
      if (same && history[t + before] < vocab) marks[history[t + before]].banned = true;
    }
    TwinLogSum sum;
    if (p.normalize != 0) sum = log_sum_of(logits, slot * vocab, vocab);
    const size_t suppress = size_t{p.search.batch} * p.search.beams * VKF_CHOICE_WORDS;
    const auto permitted = [&](uint32_t token, Real score) -> Real {
      if (length + 1 == s.max_length && s.forced_last != VKF_NO_TOKEN) {
        return token == s.forced_last ? Real(0.0f) : kImpossible;
      }
      if (length == prompt && s.forced_first != VKF_NO_TOKEN) {
        return token == s.forced_first ? Real(0.0f) : kImpossible;
      }
      bool forbidden = choice.bit(suppress, token);
      forbidden = forbidden || (length == prompt && choice.bit(suppress + words, token));
      forbidden = forbidden || (c.masked != 0 && !choice.bit(suppress + (2 + row) * words, token));
      forbidden = forbidden || (length < s.min_length && is_end(s, token));
      return forbidden ? kImpossible : score;
    };
    for (uint32_t token = 0; token < vocab; ++token) {
      const TwinMark& mark = marks[token];
      Real score = sum.of(logits[slot * vocab + token]);
      if (mark.in_prompt || mark.times != 0) {
        score = score < 0.0f ? score * c.repetition : score / c.repetition;
      }
      if (mark.times != 0) {
        score = score - (Real(c.presence) + Real(c.frequency) * static_cast<float>(mark.times));
      }
      y.put(slot * vocab + token, permitted(token, mark.banned ? kImpossible : score));
    }
  }
  return true;
}

constexpr TwinOp kChoiceTwins[] = {{"beam_select", twin_beam_select},
                                   {"expert_route", twin_expert_route},
                                   {"token_candidates", twin_token_candidates},
                                   {"token_scores", twin_token_scores}};

}  // namespace

std::span<const TwinOp> choice_twins() {
  return kChoiceTwins;
}

}  // namespace vkformer::conformance
