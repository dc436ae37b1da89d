// What a search must find, in double, by reference/beam_search.
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
  o.min_new_tokens = c.min_new_tokens;
  o.num_beams = c.beams;
  o.length_penalty = c.length_penalty;
  o.early_stopping = c.early_stopping == VKF_EARLY_STOPPING_YES ? reference::EarlyStopping::kYes
                     : c.early_stopping == VKF_EARLY_STOPPING_NEVER
                         ? reference::EarlyStopping::kNever
                         : reference::EarlyStopping::kNo;
  o.eos_token_ids = c.eos;
  o.suppress_tokens = c.suppress;
  o.begin_suppress_tokens = c.begin_suppress;
  o.forced_bos_token_id = c.forced_first;
  o.forced_eos_token_id = c.forced_last;
  return o;
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

// What every item must give, the best first.
inline std::vector<std::vector<FoundSequence>> expected_items(const SearchCase& c) {
  std::vector<std::vector<FoundSequence>> items;
  for (uint32_t item = 0; item < c.batch; ++item) {
    if (c.beams == 1) {
      items.push_back({expected_greedy(c, item)});
      continue;
    }
    const auto model = [&](const std::vector<int64_t>& prefix) -> Result<std::vector<double>> {
      const std::vector<float> logits = c.model(item, prefix);
      return std::vector<double>(logits.begin(), logits.end());
    };
    const auto found = reference::beam_search(c.prompt, model, reference_options(c));
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    items.emplace_back();
    for (const reference::Hypothesis& h : *found) items.back().push_back({h.ids, h.score});
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
