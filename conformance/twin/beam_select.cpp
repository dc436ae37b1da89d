// One step of a beam search over an item's candidates.
#include <algorithm>
#include <cstring>

#include "conformance/twin/twin_run.h"
#include "ops/node_attrs.h"
#include "params/search.h"

namespace vkformer::conformance {
namespace {

struct TwinPick {
  Real score;
  uint32_t beam = 0, token = 0;
  bool ended = false, taken = false;
};

class TwinBeams {
 public:
  TwinBeams(TwinRun& run, const Node& node)
      : a_(attrs_of<BeamSelectAttrs>(node)),
        p_(a_.search),
        candidates_(run.in(node, 0)),
        slots_{run.in(node, 1)},
        search_(run.out(node, 0)),
        ancestry_(run.out(node, 1)) {
    std::memcpy(&s_, run.in(node, 2).words.data(), sizeof(s_));
    length_ = slots_.state.words[2] + 1;
  }

  void take_items() {
    for (size_t slot = 0; slot < slots_.live(); slot += p_.beams) {
      row_ = slots_.row(slot);
      start_ = VKF_SLOT_START(slots_.entry(slot));
      item_ = row_ / p_.beams;
      if (item_ % a_.kind.groups != a_.kind.group || length_ < s_.prompt_length) continue;
      if (!pick(slot)) {
        word(item_at() + VKF_ITEM_STATUS) = VKF_STATUS_NAN;
        end(length_);
        continue;
      }
      go_on();
    }
  }

 private:
  uint32_t& word(size_t i) { return search_.words[i]; }
  Real value(size_t i) const { return search_[i]; }
  size_t tokens_at(size_t row) const { return row * p_.capacity; }
  size_t scores_at(size_t row) const { return tokens_at(rows()) + row; }
  size_t rows() const { return size_t{p_.batch} * p_.beams; }
  size_t item_at(size_t item) const { return scores_at(rows()) + item * 4; }
  size_t item_at() const { return item_at(item_); }
  size_t finished_at(size_t item, size_t place) const {
    return item_at(p_.batch) + (item * p_.beams + place) * 2;
  }
  size_t sequence_at(size_t place) const {
    return finished_at(p_.batch, 0) + (item_ * p_.beams + place) * p_.capacity;
  }
  bool is_end(uint32_t token) const {
    const auto* eos = reinterpret_cast<const uint32_t*>(s_.eos);
    return std::find(eos, eos + s_.eos_count, token) != eos + s_.eos_count;
  }
  Real divisor(uint32_t generated) const {
    HostArithmetic h;
    return power(h, static_cast<float>(generated), s_.length_penalty);
  }
  void end(uint32_t length) {
    word(item_at() + VKF_ITEM_LENGTH) = length;
    word(item_at() + VKF_ITEM_ACTIVE) = 0;
  }
  // Beams of the groups before that have chosen the token.
  Real chosen_before(uint32_t token) {
    Real count = 0.0f;
    for (size_t g = item_ - a_.kind.group; g < item_; ++g) {
      const bool active = word(item_at(g) + VKF_ITEM_ACTIVE) != 0;
      if (!active && word(item_at(g) + VKF_ITEM_LENGTH) != length_ + 1) continue;
      for (size_t j = 0; j < p_.beams; ++j) {
        if (word(tokens_at(g * p_.beams + j) + length_) == token) count += 1.0f;
      }
    }
    return count;
  }

  // The best candidates, ties by beam and then by token. False where one is NaN.
  bool pick(size_t slot) {
    std::vector<TwinPick> all;
    for (size_t c = 0; c < size_t{p_.beams} * p_.candidates; ++c) {
      const auto beam = static_cast<uint32_t>(c / p_.candidates);
      const size_t at = 2 * (slot * p_.candidates + c);
      TwinPick one{value(scores_at(row_ + beam)) + candidates_[at], beam,
                   candidates_.words[at + 1]};
      if (a_.kind.group != 0) {
        one.score = one.score - Real(s_.diversity) * chosen_before(one.token);
      }
      if (one.score.is_nan()) return false;
      one.ended = is_end(one.token) || length_ + 1 >= s_.max_length;
      all.push_back(one);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const TwinPick& x, const TwinPick& y) { return x.score.f > y.score.f; });
    all.resize(std::min<size_t>(all.size(), a_.kind.picks != 0 ? a_.kind.picks : p_.candidates));
    picks_ = std::move(all);
    return true;
  }

  // Those that run on: unended ones first, each group best first.
  std::vector<size_t> keep_running(bool& all_ended) {
    std::vector<size_t> kept;
    for (const bool ended : {false, true}) {
      while (kept.size() < p_.beams) {
        size_t best = picks_.size();
        for (size_t k = 0; k < picks_.size(); ++k) {
          if (picks_[k].ended != ended || picks_[k].taken) continue;
          if (best == picks_.size() || picks_[k].score > picks_[best].score) best = k;
        }
        if (best == picks_.size()) break;
        picks_[best].taken = true;
        kept.push_back(best);
      }
      if (!ended) all_ended = kept.empty();
    }
    return kept;
  }

  void admit_finished(uint32_t generated) {
    size_t count = word(item_at() + VKF_ITEM_FINISHED);
    const bool closed = word(item_at() + VKF_ITEM_ACTIVE) == 0 ||
                        (s_.early_stopping == VKF_EARLY_STOPPING_YES && count >= p_.beams);
    std::vector<size_t> owner(p_.beams, p_.beams);  // of each place, the pick that goes there
    for (size_t k = 0; k < p_.beams && !closed; ++k) {
      if (!picks_[k].ended) continue;
      const Real score = picks_[k].score / divisor(generated);
      size_t place = count;
      if (count == p_.beams) {
        place = 0;
        for (size_t i = 1; i < count; ++i) {
          if (value(finished_at(item_, i)) < value(finished_at(item_, place))) place = i;
        }
        if (!(score > value(finished_at(item_, place)))) continue;
      } else {
        ++count;
      }
      owner[place] = k;
      search_.put(finished_at(item_, place), score);
      word(finished_at(item_, place) + 1) = length_ + 1;
    }
    word(item_at() + VKF_ITEM_FINISHED) = static_cast<uint32_t>(count);
    for (size_t place = 0; place < p_.beams; ++place) {
      if (owner[place] == p_.beams) continue;
      const TwinPick& pick = picks_[owner[place]];
      copy(search_, tokens_at(row_ + pick.beam), sequence_at(place), length_);
      word(sequence_at(place) + length_) = pick.token;
    }
  }

  static void copy(Memory& memory, size_t from, size_t to, size_t count) {
    const auto begin = memory.words.begin();
    std::copy_n(begin + static_cast<ptrdiff_t>(from), count, begin + static_cast<ptrdiff_t>(to));
  }

  void go_on() {
    bool all_ended = false;
    const std::vector<size_t> kept = keep_running(all_ended);
    admit_finished(length_ + 1 - s_.prompt_length);
    const Memory histories = search_, owners = ancestry_;
    for (size_t j = 0; j < p_.beams; ++j) {
      const TwinPick& pick = picks_[kept[j]];
      const size_t from = tokens_at(row_ + pick.beam), to = tokens_at(row_ + j);
      for (size_t t = 0; t < length_; ++t) {
        word(to + t) = histories.words[from + t];
        if (t >= start_) ancestry_.words[to + t - start_] = owners.words[from + t - start_];
      }
    }
    for (size_t j = 0; j < p_.beams; ++j) {
      const TwinPick& pick = picks_[kept[j]];
      const size_t row = row_ + j;
      search_.put(scores_at(row), pick.score - (pick.ended ? 1e9f : 0.0f));
      word(tokens_at(row) + length_) = pick.token;
      if (length_ < p_.capacity) {
        ancestry_.words[row * p_.capacity + length_ - start_] = static_cast<uint32_t>(row);
      }
    }
    if (!continues(all_ended)) end(length_ + 1);
  }
  bool continues(bool all_ended) {
    const size_t count = word(item_at() + VKF_ITEM_FINISHED);
    if (all_ended) return false;
    if (count < p_.beams) return true;
    if (s_.early_stopping == VKF_EARLY_STOPPING_YES) return false;
    Real worst = value(finished_at(item_, 0));
    for (size_t i = 1; i < count; ++i) {
      const Real other = value(finished_at(item_, i));
      if (other < worst) worst = other;
    }
    const bool longest = s_.early_stopping == VKF_EARLY_STOPPING_NEVER && s_.length_penalty > 0.0f;
    const uint32_t generated = (longest ? s_.max_length : length_ + 1) - s_.prompt_length;
    return value(scores_at(row_)) / divisor(generated) > worst;
  }

  const BeamSelectAttrs& a_;
  const SearchParams& p_;
  const Memory& candidates_;
  TwinSlots slots_;
  Memory &search_, &ancestry_;
  SearchSettings s_{};
  uint32_t length_ = 0;
  // Of the item in hand.
  size_t row_ = 0, start_ = 0, item_ = 0;
  std::vector<TwinPick> picks_;
};

}  // namespace

// Candidates that are sampled have no twin.
bool twin_beam_select(TwinRun& run, const Node& node) {
  const BeamSelectAttrs& a = attrs_of<BeamSelectAttrs>(node);
  if (a.kind.choice == BeamChoice::kSampled) return false;
  TwinBeams(run, node).take_items();
  return true;
}

}  // namespace vkformer::conformance
