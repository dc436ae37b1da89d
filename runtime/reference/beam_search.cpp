#include "reference/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "reference/argmax.h"
#include "reference/log_softmax.h"
#include "reference/top_k.h"

namespace vkformer::reference {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();
// What a beam loses that must not be chosen: more than any sum of log-probabilities.
constexpr double kPenalty = 1e9;
constexpr int64_t kMaxBeams = 1024;
// Keeps the power of any number of tokens finite.
constexpr double kMaxLengthPenalty = 16.0;

// A running beam extended by one token.
struct Candidate {
  std::vector<int64_t> ids;
  double score = 0.0;
  bool done = false;
};

bool contains(const std::vector<int64_t>& tokens, int64_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void forbid(std::span<double> scores, const std::vector<int64_t>& tokens) {
  for (int64_t token : tokens) {
    if (token >= 0 && token < static_cast<int64_t>(scores.size())) {
      scores[static_cast<size_t>(token)] = kForbidden;
    }
  }
}

void force(std::span<double> scores, int64_t token) {
  std::fill(scores.begin(), scores.end(), kForbidden);
  if (token >= 0 && token < static_cast<int64_t>(scores.size())) {
    scores[static_cast<size_t>(token)] = 0.0;
  }
}

// The model's answer, checked.
Result<std::vector<double>> logits_after(const std::vector<int64_t>& prefix,
                                         const NextLogits& next_logits) {
  VKF_ASSIGN(std::vector<double> logits, next_logits(prefix));
  if (logits.empty()) {
    return invalid_argument("[beam_search] The model gave no logits for a prefix of " +
                            std::to_string(prefix.size()) + " tokens; it must give one per token.");
  }
  for (size_t token = 0; token < logits.size(); ++token) {
    if (logits[token] < std::numeric_limits<double>::infinity()) continue;
    return invalid_argument("[beam_search] The logit of token " + std::to_string(token) +
                            " after " + std::to_string(prefix.size()) + " tokens is " +
                            std::to_string(logits[token]) +
                            "; it must be below infinity and not NaN.");
  }
  return logits;
}

Status check_options(const SearchOptions& options) {
  if (options.max_new_tokens < 1 || options.num_beams < 1 || options.num_beams > kMaxBeams) {
    return invalid_argument(
        "[beam_search] max_new_tokens is " + std::to_string(options.max_new_tokens) +
        " and num_beams " + std::to_string(options.num_beams) +
        "; both must be at least 1, and at most " + std::to_string(kMaxBeams) + " beams are kept.");
  }
  if (!(std::abs(options.length_penalty) <= kMaxLengthPenalty)) {
    return invalid_argument("[beam_search] The length penalty is " +
                            std::to_string(options.length_penalty) +
                            "; it must be between -16 and 16.");
  }
  return {};
}

// The K best extensions of the running beams, best first. `new_tokens` were appended so far.
Result<std::vector<Candidate>> extend(const std::vector<Hypothesis>& running, int64_t new_tokens,
                                      const NextLogits& next_logits, const SearchOptions& options) {
  std::vector<double> totals;
  size_t vocabulary = 0;
  for (const Hypothesis& beam : running) {
    VKF_ASSIGN(std::vector<double> scores, logits_after(beam.ids, next_logits));
    if (vocabulary != 0 && scores.size() != vocabulary) {
      return invalid_argument("[beam_search] The model gave " + std::to_string(scores.size()) +
                              " logits after giving " + std::to_string(vocabulary) +
                              "; it must give the same number every time.");
    }
    vocabulary = scores.size();
    log_softmax_row(scores);
    scores = penalised_scores(scores, beam.ids, beam.ids.size() - static_cast<size_t>(new_tokens),
                              options.penalties);
    process_scores(scores, new_tokens, options);
    for (double score : scores) totals.push_back(beam.score + score);
  }
  const int64_t ends = static_cast<int64_t>(options.eos_token_ids.size());
  const int64_t keep = std::max<int64_t>(2, 1 + ends) * options.num_beams;
  std::vector<Candidate> best;
  for (int64_t at : top_k_row(totals, keep)) {
    const int64_t token = at % static_cast<int64_t>(vocabulary);
    Candidate candidate;
    candidate.ids = running[static_cast<size_t>(at) / vocabulary].ids;
    candidate.ids.push_back(token);
    candidate.score = totals[static_cast<size_t>(at)];
    candidate.done =
        contains(options.eos_token_ids, token) || new_tokens + 1 == options.max_new_tokens;
    best.push_back(std::move(candidate));
  }
  return best;
}

void sort_best_first(std::vector<Hypothesis>& beams) {
  std::stable_sort(beams.begin(), beams.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

void keep_best(std::vector<Hypothesis>& beams, size_t count) {
  sort_best_first(beams);
  if (beams.size() > count) beams.resize(count);
}

}  // namespace

void process_scores(std::span<double> scores, int64_t new_tokens, const SearchOptions& options) {
  forbid(scores, options.bad_words_ids);
  forbid(scores, options.suppress_tokens);
  if (new_tokens == 0) forbid(scores, options.begin_suppress_tokens);
  if (new_tokens == 0 && options.forced_bos_token_id) force(scores, *options.forced_bos_token_id);
  if (new_tokens + 1 == options.max_new_tokens && options.forced_eos_token_id) {
    force(scores, *options.forced_eos_token_id);
  }
}

Result<std::vector<Hypothesis>> beam_search(const std::vector<int64_t>& prompt,
                                            const NextLogits& next_logits,
                                            const SearchOptions& options) {
  VKF_CHECK(check_options(options));
  const size_t beams = static_cast<size_t>(options.num_beams);
  std::vector<Hypothesis> running(beams, Hypothesis{prompt, -kPenalty});
  running[0].score = 0.0;
  std::vector<Hypothesis> finished;
  bool active = true;
  for (int64_t new_tokens = 0; new_tokens < options.max_new_tokens; ++new_tokens) {
    VKF_ASSIGN(const std::vector<Candidate> candidates,
               extend(running, new_tokens, next_logits, options));
    const double length = std::pow(static_cast<double>(new_tokens + 1), options.length_penalty);
    const auto full = [&] { return options.early_stopping && finished.size() >= beams; };
    const bool accepts = active && !full();
    bool all_done = true;
    running.clear();
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const Candidate& candidate = candidates[rank];
      all_done = all_done && candidate.done;
      running.push_back({candidate.ids, candidate.score - (candidate.done ? kPenalty : 0.0)});
      if (accepts && candidate.done && rank < beams) {
        finished.push_back({candidate.ids, candidate.score / length});
      }
    }
    keep_best(running, beams);
    keep_best(finished, beams);
    active = active &&
             (finished.size() < beams || running.front().score / length > finished.back().score);
    if (!active || full() || all_done) break;
  }
  return finished;
}

Result<std::vector<int64_t>> greedy_search(const std::vector<int64_t>& prompt,
                                           const NextLogits& next_logits,
                                           const SearchOptions& options) {
  VKF_CHECK(check_options(options));
  std::vector<int64_t> ids = prompt;
  for (int64_t new_tokens = 0; new_tokens < options.max_new_tokens; ++new_tokens) {
    VKF_ASSIGN(std::vector<double> scores, logits_after(ids, next_logits));
    scores = penalised_scores(scores, ids, prompt.size(), options.penalties);
    process_scores(scores, new_tokens, options);
    const int64_t token = argmax_row(scores);
    ids.push_back(token);
    if (contains(options.eos_token_ids, token)) break;
  }
  return ids;
}

}  // namespace vkformer::reference
