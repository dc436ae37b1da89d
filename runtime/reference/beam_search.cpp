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
Result<std::vector<Candidate>> extend(const std::vector<Hypothesis>& running, int64_t new_tokens,
                                      const std::vector<int64_t>& chosen,
                                      const NextLogits& next_logits, const SearchOptions& options) {
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

struct Group {
  std::vector<Hypothesis> running;
  std::vector<Hypothesis> finished;
  bool active = true;
  bool over = false;
};

// Takes a group on by what was extended.
void advance(Group& group, const std::vector<Candidate>& candidates, int64_t new_tokens,
             const SearchOptions& options) {
  const size_t beams = group.running.size();
  const double length = std::pow(static_cast<double>(new_tokens + 1), options.length_penalty);
  const auto full = [&] { return options.early_stopping && group.finished.size() >= beams; };
  const bool accepts = group.active && !full();
  bool all_done = true;
  group.running.clear();
  for (size_t rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& candidate = candidates[rank];
    all_done = all_done && candidate.done;
    group.running.push_back({candidate.ids, candidate.score - (candidate.done ? kPenalty : 0.0)});
    if (accepts && candidate.done && rank < beams)
      group.finished.push_back({candidate.ids, candidate.score / length});
  }
  keep_best(group.running, beams);
  keep_best(group.finished, beams);
  group.active =
      group.active && (group.finished.size() < beams ||
                       group.running.front().score / length > group.finished.back().score);
  group.over = !group.active || full() || all_done;
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
  SearchOptions alone = options;
  alone.groups = 1;
  return diverse_beam_search(prompt, next_logits, alone);
}

Result<std::vector<Hypothesis>> diverse_beam_search(const std::vector<int64_t>& prompt,
                                                    const NextLogits& next_logits,
                                                    const SearchOptions& options) {
  VKF_CHECK(check_options(options));
  const auto beams = static_cast<size_t>(options.num_beams / options.groups);
  Group first{std::vector<Hypothesis>(beams, Hypothesis{prompt, -kPenalty})};
  first.running[0].score = 0.0;
  std::vector<Group> groups(static_cast<size_t>(options.groups), first);
  for (int64_t new_tokens = 0; new_tokens < options.max_new_tokens; ++new_tokens) {
    std::vector<int64_t> chosen;
    for (Group& group : groups) {
      if (group.over) continue;
      VKF_ASSIGN(const std::vector<Candidate> candidates,
                 extend(group.running, new_tokens, chosen, next_logits, options));
      advance(group, candidates, new_tokens, options);
      for (const Hypothesis& beam : group.running) chosen.push_back(beam.ids.back());
    }
  }
  std::vector<Hypothesis> finished;
  for (const Group& group : groups)
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
