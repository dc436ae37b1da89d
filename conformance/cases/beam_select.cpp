// The cases of beam_select: its checks, and what the benchmark times.
#include "ops/beam_select.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/search_state.h"
#include "reference/top_k.h"

namespace vkformer::conformance {
namespace {

// What is special about the step.
enum class Moment : uint8_t {
  kMiddle,
  kFirst,       // all beams but one are impossible
  kNan,         // among some items' candidates
  kImpossible,  // all but two of an item's candidates are -inf
  kEqual,       // sums are equal within an item: beams and ranks decide
};

struct BeamStep {
  uint32_t items = 4, beams = 4;
  uint32_t position = 7, prompt = 3;
  reference::SearchOptions options = {.max_new_tokens = 13};
  uint32_t groups = 1;
  Moment moment = Moment::kMiddle;
  uint64_t seed = 1;

  uint32_t vocab() const { return candidates() + 61; }
  uint32_t candidates() const {
    return std::max(2u, 1 + static_cast<uint32_t>(options.eos_token_ids.size())) * beams;
  }
  uint32_t length() const { return position + 1; }
};

struct Candidates {
  std::vector<double> scores;    // (R, K), best first
  std::vector<uint32_t> tokens;  // (R, K)
};

// Of all slots. Scores are sixty-fourths, exact in every sum; every third token or so ends.
Candidates make_candidates(const BeamStep& c, const SearchState& s) {
  Noise noise(c.seed + 17);
  Candidates all;
  for (uint32_t slot = 0; slot < s.slots(); ++slot) {
    std::vector<uint32_t> ends, others;
    for (uint32_t token = 0; token < c.vocab(); ++token) {
      const auto& eos = c.options.eos_token_ids;
      (std::find(eos.begin(), eos.end(), token) != eos.end() ? ends : others).push_back(token);
    }
    const uint32_t item = slot / c.beams;
    double score = 0;
    for (uint32_t k = 0; k < c.candidates(); ++k) {
      std::vector<uint32_t>& from = !ends.empty() && noise.below(3) == 0 ? ends : others;
      const auto chosen = from.begin() + noise.below(static_cast<int64_t>(from.size()));
      all.tokens.push_back(*chosen);
      from.erase(chosen);
      score -= static_cast<double>(1 + noise.below(40)) / 64;
      if (c.moment == Moment::kEqual) score = -0.5 * (k / 2);
      const uint32_t possible = slot % c.beams == 0 ? 2 : 0;
      const bool cut = c.moment == Moment::kImpossible && k >= possible;
      all.scores.push_back(cut ? -std::numeric_limits<double>::infinity() : score);
    }
    if (c.moment == Moment::kNan && item % 2 == 0 && slot % c.beams == c.beams - 1) {
      all.scores[all.scores.size() - 1 - item % c.candidates()] = kUntouched;
    }
  }
  return all;
}

// Some items have finished sequences already, one of them as many as it keeps.
void add_finished(const BeamStep& c, SearchState& s) {
  Noise noise(c.seed + 29);
  for (const uint32_t item : s.live) {
    const uint32_t count = c.moment == Moment::kFirst ? 0 : item * c.beams / 3 % (c.beams + 1);
    s.search[s.layout.item(item) + VKF_ITEM_FINISHED] = count;
    for (uint32_t place = 0; place < count; ++place) {
      const uint32_t length = c.prompt + u32(noise.below(c.length() - c.prompt + 1));
      s.set_float(s.layout.finished(item, place), 3 * noise.normal() - 4);
      s.search[s.layout.finished(item, place) + 1] = length;
      for (uint32_t t = 0; t < length; ++t) {
        s.search[s.layout.sequence(item, place) + t] = u32(noise.below(c.vocab()));
      }
    }
  }
}

std::vector<int64_t> ids_at(const SearchState& s, size_t word, uint32_t count) {
  const auto begin = s.search.begin() + static_cast<std::ptrdiff_t>(word);
  return {begin, begin + count};
}

reference::BeamGroup group_of(const BeamStep& c, const SearchState& s, uint32_t item) {
  reference::BeamGroup group;
  for (uint32_t beam = 0; beam < c.beams; ++beam) {
    const size_t row = size_t{item} * c.beams + beam;
    group.running.push_back(
        {ids_at(s, s.layout.tokens(row), c.length()), s.get_float(s.layout.score(row))});
  }
  for (uint32_t place = 0; place < s.search[s.layout.item(item) + VKF_ITEM_FINISHED]; ++place) {
    const size_t at = s.layout.finished(item, place);
    group.finished.push_back(
        {ids_at(s, s.layout.sequence(item, place), s.search[at + 1]), s.get_float(at)});
  }
  std::stable_sort(group.finished.begin(), group.finished.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return group;
}

// What the step has made of the item.
void put_group(const BeamStep& c, const reference::BeamGroup& group, uint32_t item,
               SearchState& s) {
  const std::vector<uint32_t> ancestry = s.ancestry;
  const uint32_t capacity = s.layout.p.capacity, own = c.length() - s.starts[item];
  for (uint32_t beam = 0; beam < c.beams; ++beam) {
    const uint32_t row = item * c.beams + beam;
    const reference::Hypothesis& running = group.running[beam];
    for (size_t t = 0; t < running.ids.size(); ++t) {
      s.search[s.layout.tokens(row) + t] = u32(running.ids[t]);
    }
    s.set_float(s.layout.score(row), running.score);
    const size_t parent = size_t{item} * c.beams + group.parents[beam];
    std::copy_n(ancestry.begin() + static_cast<std::ptrdiff_t>(parent * capacity), own,
                s.ancestry.begin() + static_cast<std::ptrdiff_t>(size_t{row} * capacity));
    s.ancestry[size_t{row} * capacity + own] = row;
  }
  uint32_t* words = s.search.data() + s.layout.item(item);
  words[VKF_ITEM_FINISHED] = static_cast<uint32_t>(group.finished.size());
  for (size_t place = 0; place < group.finished.size(); ++place) {
    const std::vector<int64_t>& ids = group.finished[place].ids;
    s.set_float(s.layout.finished(item, place), group.finished[place].score);
    s.search[s.layout.finished(item, place) + 1] = static_cast<uint32_t>(ids.size());
    for (size_t t = 0; t < ids.size(); ++t) {
      s.search[s.layout.sequence(item, place) + t] = u32(ids[t]);
    }
  }
  if (!group.over) return;
  words[VKF_ITEM_ACTIVE] = 0;
  words[VKF_ITEM_LENGTH] = c.length() + 1;
}

// How many beams of the groups before this item have chosen the token now.
int64_t chosen_before(const BeamStep& c, const SearchState& s, uint32_t item, uint32_t token) {
  int64_t count = 0;
  for (uint32_t other = item / c.groups * c.groups; other < item; ++other) {
    const uint32_t* words = s.search.data() + s.layout.item(other);
    const bool ended = words[VKF_ITEM_ACTIVE] == 0 && words[VKF_ITEM_LENGTH] != c.length() + 1;
    for (uint32_t beam = 0; beam < c.beams && !ended; ++beam) {
      const size_t row = size_t{other} * c.beams + beam;
      count += s.search[s.layout.tokens(row) + c.length()] == token ? 1 : 0;
    }
  }
  return count;
}

// The step of one live item; `first` is its first slot.
void step_item(const BeamStep& c, const Candidates& all, uint32_t first, SearchState& s) {
  const uint32_t item = s.live[first / c.beams], k = c.candidates();
  reference::BeamGroup group = group_of(c, s, item);
  std::vector<double> totals;
  for (uint32_t i = 0; i < c.beams * k; ++i) {
    const size_t at = size_t{first} * k + i;
    const auto before = static_cast<double>(chosen_before(c, s, item, all.tokens[at]));
    totals.push_back(group.running[i / k].score + all.scores[at] - c.options.diversity * before);
  }
  if (std::any_of(totals.begin(), totals.end(), [](double x) { return std::isnan(x); })) {
    uint32_t* words = s.search.data() + s.layout.item(item);
    words[VKF_ITEM_STATUS] = VKF_STATUS_NAN;
    words[VKF_ITEM_LENGTH] = c.length();
    words[VKF_ITEM_ACTIVE] = 0;
    return;
  }
  std::vector<reference::BeamCandidate> best;
  for (const int64_t at : reference::top_k_row(totals, k)) {
    const auto i = static_cast<size_t>(at);
    best.push_back({i / k, all.tokens[size_t{first} * k + i], totals[i]});
  }
  reference::beam_step(group, best, c.length() - c.prompt, c.options);
  put_group(c, group, item, s);
}

Result<CheckCase> beam_case(const BeamStep& c) {
  const SearchParams params{.batch = c.items,
                            .beams = c.beams,
                            .capacity = c.prompt + u32(c.options.max_new_tokens) + 3,
                            .vocab = c.vocab(),
                            .candidates = c.candidates(),
                            .arg_count = 0};
  SearchState s = random_search(params, c.position, c.seed);
  for (size_t row = 0; row < s.layout.rows(); ++row) {
    if (c.moment == Moment::kEqual) s.set_float(s.layout.score(row), -1);
    if (c.moment == Moment::kFirst) s.set_float(s.layout.score(row), row % c.beams == 0 ? 0 : -1e9);
  }
  const uint32_t rows = c.items * c.beams;
  if (c.length() >= c.prompt) add_finished(c, s);
  CheckCase made;
  made.op.graph.set_step(rows);
  made.live_slots = s.slots();
  const SearchTensors t = bind_state(made.op, s, c.options, c.prompt);
  const Candidates all = make_candidates(c, s);
  std::vector<uint32_t> list(size_t{rows} * c.candidates() * 2, kUnwritten);
  for (size_t i = 0; i < all.scores.size(); ++i) {
    list[2 * i] = std::bit_cast<uint32_t>(static_cast<float>(all.scores[i]));
    list[2 * i + 1] = all.tokens[i];
  }
  Tensor candidates = words(list);
  candidates.shape = {rows, c.candidates(), 2};
  const TensorId chosen = made.op.bind("candidates", std::move(candidates));
  for (uint32_t group = 0; group < c.groups; ++group) {
    const BeamSelectKind kind{.groups = c.groups, .group = group};
    VKF_CHECK(add_beam_select(made.op.graph, chosen, t, kind));
    for (uint32_t first = 0; first < s.slots(); first += c.beams) {
      const bool turn = s.live[first / c.beams] % c.groups == group;
      if (turn && c.length() >= c.prompt) step_item(c, all, first, s);
    }
  }
  VKF_ASSIGN(Array ancestry, reference::from_tensor(words(s.ancestry)));
  ancestry.shape = {rows, params.capacity};
  made.expected.emplace("ancestry", Expected{std::move(ancestry)});
  VKF_CHECK(expect_search(made, s, Sequences::kTokens));
  return made;
}

void add_length_checks(OperatorCases& cases) {
  // One workgroup of 32 copies histories.
  for (const uint32_t position : {2u, 30u, 31u, 32u, 63u, 64u, 128u, 1499u}) {
    BeamStep c;
    c.position = position;
    c.options.max_new_tokens = position + 6;
    c.options.eos_token_ids = {5};
    cases.check("length/" + std::to_string(position + 1), position == 32,
                [=] { return beam_case(c); });
  }
}

void add_size_checks(OperatorCases& cases) {
  for (const auto& [items, beams] : {std::pair{1u, 1u},
                                     {1u, 2u},
                                     {7u, 3u},
                                     {5u, 4u},
                                     {33u, 5u},
                                     {3u, 7u},
                                     {4u, 8u},
                                     {2u, 15u},
                                     {3u, 16u}}) {
    const bool quick = beams == 3 || beams == 16;
    for (const std::vector<int64_t>& eos :
         {std::vector<int64_t>{}, {1}, {0, 9}, {3, 4, 7}, {0, 2, 4, 6, 8, 10, 12, 14}}) {
      BeamStep c{.items = items, .beams = beams, .seed = items + beams};
      c.options.eos_token_ids = eos;
      if (c.candidates() > VKF_MAX_CANDIDATES) continue;
      cases.check("size/" + size_text({items, beams}) + "-ends-" + std::to_string(eos.size()),
                  quick, [=] { return beam_case(c); });
    }
  }
}

}  // namespace

void beam_select_cases(OperatorCases& cases) {
  add_size_checks(cases);
  add_length_checks(cases);
  for (const double penalty : {0.6, 1.0, 2.0, 0.0, -0.5}) {
    for (const auto early : {reference::EarlyStopping::kNo, reference::EarlyStopping::kYes,
                             reference::EarlyStopping::kNever}) {
      BeamStep c{.items = 9};
      c.options.eos_token_ids = {2};
      c.options.length_penalty = penalty;
      c.options.early_stopping = early;
      constexpr const char* kNames[] = {"no/", "yes/", "never/"};
      cases.check(std::string("early-") + kNames[static_cast<size_t>(early)] +
                      std::to_string(static_cast<int>(penalty * 10)),
                  penalty == 0.6, [=] { return beam_case(c); });
    }
  }
  for (const auto& [moment, name] : {std::pair{Moment::kFirst, "first"},
                                     {Moment::kNan, "nan"},
                                     {Moment::kImpossible, "impossible"},
                                     {Moment::kEqual, "equal"}}) {
    BeamStep c{.items = 6, .moment = moment};
    if (moment == Moment::kFirst) c.position = c.prompt - 1;
    // Equal sequences that end have no order.
    if (moment == Moment::kFirst || moment == Moment::kNan) c.options.eos_token_ids = {4};
    cases.check(std::string("moment/") + name, true, [=] { return beam_case(c); });
  }
  BeamStep last{.items = 5, .position = 14};
  cases.check("moment/last", true, [=] { return beam_case(last); });
  BeamStep prompt{.items = 5, .position = 4, .prompt = 9};
  cases.check("moment/prompt", true, [=] { return beam_case(prompt); });
  for (const auto& [groups, beams] : {std::pair{2u, 1u}, {2u, 2u}, {3u, 4u}, {4u, 3u}}) {
    BeamStep c{.items = 3 * groups, .beams = beams, .groups = groups, .seed = groups + beams};
    c.options.eos_token_ids = {1};
    c.options.diversity = 0.25;
    cases.check("groups/" + size_text({groups, beams}), groups == 3, [=] { return beam_case(c); });
  }
  cases.time_graph("marian 6 beams", "items=1 beams=6 capacity=128 vocab=59514", select_graph);
  cases.time_graph("bart-base 8x4 beams", "items=8 beams=4 capacity=128 vocab=50265", select_graph);
  cases.limited_by("sequential choices among a few dozen candidates; one workgroup an item");
}

}  // namespace vkformer::conformance
