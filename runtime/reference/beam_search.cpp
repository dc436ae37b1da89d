#include "reference/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/message.h"
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
    return invalid_argument(message({"[beam_search] The model gave no logits for a prefix of ",
                                     prefix.size(), " tokens; it must give one per token."}));
  }
  for (size_t token = 0; token < logits.size(); ++token) {
    if (logits[token] < std::numeric_limits<double>::infinity()) continue;
    return invalid_argument(
        message({"[beam_search] The logit of token ", token, " after ", prefix.size(),
                 " tokens is ", logits[token], "; it must be below infinity and not NaN."}));
  }
  return logits;
}

Status check_options(const SearchOptions& options) {
  if (options.max_new_tokens < 1 || options.num_beams < 1 || options.num_beams > kMaxBeams) {
    return invalid_argument(
        message({"[beam_search] max_new_tokens is ", options.max_new_tokens, " and num_beams ",
                 options.num_beams, "; both must be at least 1, and at most ", kMaxBeams,
                 " beams are kept."}));
  }
  if (options.groups < 1 || options.num_beams % options.groups != 0) {
    return invalid_argument(
        message({"[beam_search] ", options.num_beams, " beams cannot be divided into ",
                 options.groups, " groups; the groups must be alike."}));
  }
  if (!(std::abs(options.length_penalty) <= kMaxLengthPenalty)) {
    return invalid_argument(message({"[beam_search] The length penalty is ", options.length_penalty,
                                     "; it must be between -16 and 16."}));
  }
  return {};
}

// The K best extensions of the running beams, best first. `new_tokens` were appended so far, and
// `chosen` are tokens that other groups chose at this step.
Result<std::vector<BeamCandidate>> extend(const std::vector<Hypothesis>& running,
                                          int64_t new_tokens, const std::vector<int64_t>& chosen,
                                          const NextLogits& next_logits,
                                          const SearchOptions& options) {
  std::vector<double> totals;
  size_t vocabulary = 0;
  for (const Hypothesis& beam : running) {
    VKF_ASSIGN(std::vector<double> scores, logits_after(beam.ids, next_logits));
    if (vocabulary != 0 && scores.size() != vocabulary) {
      return invalid_argument(
          message({"[beam_search] The model gave ", scores.size(), " logits after giving ",
                   vocabulary, "; it must give the same number every time."}));
    }
    vocabulary = scores.size();
    log_softmax_row(scores);
    scores = penalised_scores(scores, beam.ids, beam.ids.size() - static_cast<size_t>(new_tokens),
                              options.penalties);
    process_scores(scores, new_tokens, options);
    for (int64_t token : chosen) scores[static_cast<size_t>(token)] -= options.diversity;
    for (double score : scores) totals.push_back(beam.score + score);
  }
  const int64_t ends = static_cast<int64_t>(options.eos_token_ids.size());
  const int64_t keep = std::max<int64_t>(2, 1 + ends) * static_cast<int64_t>(running.size());
  std::vector<BeamCandidate> best;
  for (int64_t at : top_k_row(totals, keep)) {
    best.push_back({.parent = static_cast<size_t>(at) / vocabulary,
                    .token = at % static_cast<int64_t>(vocabulary),
                    .score = totals[static_cast<size_t>(at)]});
  }
  return best;
}

void sort_best_first(std::vector<Hypothesis>& beams) {
  std::stable_sort(beams.begin(), beams.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

}  // namespace

void beam_step(BeamGroup& group, const std::vector<BeamCandidate>& candidates, int64_t new_tokens,
               const SearchOptions& options) {
  const size_t beams = group.running.size();
  const auto power = [&](int64_t tokens) {
    return std::pow(static_cast<double>(tokens), options.length_penalty);
  };
  const bool last = new_tokens + 1 == options.max_new_tokens;
  const auto full = [&] {
    return options.early_stopping == EarlyStopping::kYes && group.finished.size() >= beams;
  };
  const bool accepts = group.active && !full();
  bool all_done = true;
  std::vector<BeamCandidate> kept;
  for (size_t rank = 0; rank < candidates.size(); ++rank) {
    BeamCandidate candidate = candidates[rank];
    const bool done = last || contains(options.eos_token_ids, candidate.token);
    all_done = all_done && done;
    if (accepts && done && rank < beams) {
      std::vector<int64_t> ids = group.running[candidate.parent].ids;
      ids.push_back(candidate.token);
      group.finished.push_back({std::move(ids), candidate.score / power(new_tokens + 1)});
    }
    candidate.score -= done ? kPenalty : 0.0;
    kept.push_back(candidate);
  }
  std::stable_sort(kept.begin(), kept.end(), [](const BeamCandidate& a, const BeamCandidate& b) {
    return a.score > b.score;
  });
  if (kept.size() > beams) kept.resize(beams);
  std::vector<Hypothesis> running;
  group.parents.clear();
  for (const BeamCandidate& candidate : kept) {
    running.push_back({group.running[candidate.parent].ids, candidate.score});
    running.back().ids.push_back(candidate.token);
    group.parents.push_back(candidate.parent);
  }
  group.running = std::move(running);
  sort_best_first(group.finished);
  if (group.finished.size() > beams) group.finished.resize(beams);
  const bool any_length =
      options.early_stopping == EarlyStopping::kNever && options.length_penalty > 0;
  const double reach = power(any_length ? options.max_new_tokens : new_tokens + 1);
  group.active =
      group.active && (group.finished.size() < beams ||
                       group.running.front().score / reach > group.finished.back().score);
  group.over = !group.active || full() || all_done;
}

void process_scores(std::span<double> scores, int64_t new_tokens, const SearchOptions& options) {
  if (new_tokens < options.min_new_tokens) forbid(scores, options.eos_token_ids);
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
  SearchOptions alone = options;
  alone.groups = 1;
  return diverse_beam_search(prompt, next_logits, alone);
}

Result<std::vector<Hypothesis>> diverse_beam_search(const std::vector<int64_t>& prompt,
                                                    const NextLogits& next_logits,
                                                    const SearchOptions& options) {
  VKF_CHECK(check_options(options));
  const auto beams = static_cast<size_t>(options.num_beams / options.groups);
  BeamGroup first{std::vector<Hypothesis>(beams, Hypothesis{prompt, -kPenalty}), {}};
  first.running[0].score = 0.0;
  std::vector<BeamGroup> groups(static_cast<size_t>(options.groups), first);
  for (int64_t new_tokens = 0; new_tokens < options.max_new_tokens; ++new_tokens) {
    std::vector<int64_t> chosen;
    for (BeamGroup& group : groups) {
      if (group.over) continue;
      VKF_ASSIGN(const std::vector<BeamCandidate> candidates,
                 extend(group.running, new_tokens, chosen, next_logits, options));
      beam_step(group, candidates, new_tokens, options);
      for (const Hypothesis& beam : group.running) chosen.push_back(beam.ids.back());
    }
  }
  std::vector<Hypothesis> finished;
  for (const BeamGroup& group : groups)
    finished.insert(finished.end(), group.finished.begin(), group.finished.end());
  sort_best_first(finished);
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
