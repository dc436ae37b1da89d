// What a search must find, in double: reference/beam_search, and its definition once more with what
// the reference leaves out (early stopping "never", a least number of new tokens).
#pragma once

#include <cmath>

#include "ops/search_run.h"
#include "reference/beam_search.h"
#include "reference/log_softmax.h"
#include "reference/top_k.h"

namespace vkformer::testing {

inline reference::SearchOptions reference_options(const SearchCase& c) {
  reference::SearchOptions o;
  o.max_new_tokens = c.max_new_tokens;
  o.num_beams = c.beams;
  o.length_penalty = c.length_penalty;
  o.early_stopping = c.early_stopping == VKF_EARLY_STOPPING_YES;
  o.eos_token_ids = c.eos;
  o.suppress_tokens = c.suppress;
  o.begin_suppress_tokens = c.begin_suppress;
  o.forced_bos_token_id = c.forced_first;
  o.forced_eos_token_id = c.forced_last;
  return o;
}

inline bool reference_covers(const SearchCase& c) {
  return c.early_stopping != VKF_EARLY_STOPPING_NEVER && c.min_new_tokens == 0;
}

inline bool is_end(const SearchCase& c, int64_t token) {
  return std::find(c.eos.begin(), c.eos.end(), token) != c.eos.end();
}

// Processed log-probabilities of the token after `prefix`.
inline std::vector<double> processed_scores(const SearchCase& c, int64_t item,
                                            const std::vector<int64_t>& prefix) {
  const std::vector<float> logits = c.model(item, prefix);
  Array row{{static_cast<int64_t>(logits.size())}, {logits.begin(), logits.end()}};
  std::vector<double> scores = reference::log_softmax(row).value().data;
  const auto new_tokens = static_cast<int64_t>(prefix.size() - c.prompt.size());
  if (new_tokens < c.min_new_tokens) {
    for (int64_t token : c.eos) scores[static_cast<size_t>(token)] = -kInfinity;
  }
  reference::process_scores(scores, new_tokens, reference_options(c));
  return scores;
}

inline FoundSequence expected_greedy(const SearchCase& c, int64_t item) {
  FoundSequence found{c.prompt, 0};
  for (uint32_t step = 0; step < c.max_new_tokens; ++step) {
    const std::vector<double> scores = processed_scores(c, item, found.ids);
    const auto best = std::max_element(scores.begin(), scores.end());
    found.ids.push_back(best - scores.begin());
    found.score += *best;
    if (is_end(c, found.ids.back())) break;
  }
  return found;
}

// The best n of the candidates or hypotheses, ties in their order.
inline void keep_best_sequences(std::vector<FoundSequence>& list, size_t n) {
  std::stable_sort(list.begin(), list.end(), [](const FoundSequence& a, const FoundSequence& b) {
    return a.score > b.score;
  });
  if (list.size() > n) list.resize(n);
}

inline std::vector<FoundSequence> best_extensions(const SearchCase& c, int64_t item,
                                                  const std::vector<FoundSequence>& running) {
  std::vector<FoundSequence> all;
  for (const FoundSequence& beam : running) {
    const std::vector<double> scores = processed_scores(c, item, beam.ids);
    for (size_t token = 0; token < scores.size(); ++token) {
      all.push_back({beam.ids, beam.score + scores[token]});
      all.back().ids.push_back(static_cast<int64_t>(token));
    }
  }
  keep_best_sequences(all, c.candidates());
  return all;
}

// reference/beam_search.h has the definition; "never" divides the best running score by the longest
// possible length where the penalty rewards length.
inline std::vector<FoundSequence> expected_beams(const SearchCase& c, int64_t item) {
  std::vector<FoundSequence> running(c.beams, {c.prompt, -1e9});
  running[0].score = 0;
  std::vector<FoundSequence> finished;
  for (uint32_t made = 1; made <= c.max_new_tokens; ++made) {
    const std::vector<FoundSequence> candidates = best_extensions(c, item, running);
    const bool stop_full = c.early_stopping == VKF_EARLY_STOPPING_YES;
    const bool full = stop_full && finished.size() >= c.beams;
    const double divisor = std::pow(made, c.length_penalty);
    bool all_done = true;
    running.clear();
    for (size_t k = 0; k < candidates.size(); ++k) {
      const bool done = is_end(c, candidates[k].ids.back()) || made == c.max_new_tokens;
      all_done = all_done && done;
      running.push_back({candidates[k].ids, candidates[k].score - (done ? 1e9 : 0)});
      if (!full && done && k < c.beams) {
        finished.push_back({candidates[k].ids, candidates[k].score / divisor});
      }
    }
    keep_best_sequences(running, c.beams);
    keep_best_sequences(finished, c.beams);
    const bool longest = c.early_stopping == VKF_EARLY_STOPPING_NEVER && c.length_penalty > 0;
    const double reach = longest ? std::pow(c.max_new_tokens, c.length_penalty) : divisor;
    const bool enough = finished.size() >= c.beams;
    if (all_done || (enough && stop_full)) break;
    if (enough && !(running[0].score / reach > finished.back().score)) break;
  }
  return finished;
}

// What every item must give, the best first; checked against the reference where it has the case.
inline std::vector<std::vector<FoundSequence>> expected_items(const SearchCase& c) {
  std::vector<std::vector<FoundSequence>> items;
  for (uint32_t item = 0; item < c.batch; ++item) {
    items.push_back(c.beams == 1 ? std::vector<FoundSequence>{expected_greedy(c, item)}
                                 : expected_beams(c, item));
    if (!reference_covers(c)) continue;
    const auto model = [&](const std::vector<int64_t>& prefix) -> Result<std::vector<double>> {
      const std::vector<float> logits = c.model(item, prefix);
      return std::vector<double>(logits.begin(), logits.end());
    };
    if (c.beams == 1) {
      const auto ids = reference::greedy_search(c.prompt, model, reference_options(c));
      REQUIRE(ids.ok());
      CHECK(*ids == items.back()[0].ids);
      continue;
    }
    const auto found = reference::beam_search(c.prompt, model, reference_options(c));
    REQUIRE(found.ok());
    REQUIRE(found->size() == items.back().size());
    for (size_t i = 0; i < found->size(); ++i) CHECK((*found)[i].ids == items.back()[i].ids);
  }
  return items;
}

// Runs the search and compares every hypothesis, its length and its score.
inline void check_search(const TierDevice& device, const SearchCase& c) {
  CAPTURE(device.tier);
  const std::vector<std::vector<FoundSequence>> expected = expected_items(c);
  const std::vector<FoundItem> found = SearchRun(device, c).finish();
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(found[i].nan);
    REQUIRE(found[i].sequences.size() == expected[i].size());
    for (size_t k = 0; k < expected[i].size(); ++k) {
      CAPTURE(k);
      CHECK(found[i].sequences[k].ids == expected[i][k].ids);
      const double score = expected[i][k].score;
      if (std::isinf(score)) {
        CHECK(found[i].sequences[k].score == score);
      } else {
        CHECK(std::abs(found[i].sequences[k].score - score) <= 1e-5 + 2e-6 * std::abs(score));
      }
    }
  }
}

}  // namespace vkformer::testing
