// beam_search and greedy_search: token choice over any model that gives logits for a prefix.
//
// One sequence at a time, without a cache: the model is called with the whole prefix. The
// definition, with P the prompt's length, n beams, M = P + max_new_tokens and
// K = max(2, 1 + number of end tokens) n:
//
//   running  = [(0, prompt)] + (n - 1) x [(-1e9, prompt)];  finished = [];  active = true
//   loop, cur = current length:
//     candidates = score + processed log_softmax(logits)[token], every running beam and token
//     keep the K best, best first (ties: lower beam, then lower token)
//     done(c)  = the token of c is an end token, or cur + 1 = M
//     running' = the n best of the K, those with done(c) counted with score - 1e9
//     if active and not (early stopping and len(finished) >= n):
//       those of the first n of the K that are done join finished with score
//       score / (cur + 1 - P)^length_penalty; finished keeps its n best
//     cur = cur + 1
//     active = active and (len(finished) < n or
//              running'[0].score / (reach - P)^length_penalty > worst finished score)
//     stop when not active, or early stopping and len(finished) >= n, or all K were done
//
// reach is cur; where early stopping is "never" and the penalty rewards length, it is M.
//
// diverse_beam_search divides the n beams into groups, each its own search with n / groups
// beams. At each step the groups go on one after the other. A token's score loses `diversity` for
// every running beam of the groups before that ends in it now (Vijayakumar et al. 2018). The
// finished sequences of all groups together are the result.
//
// Scores are processed in this order, on logits (greedy) or log-probabilities (beam), without
// renormalizing. First come penalties (sampling.h). Then end tokens before min_new_tokens, bad
// words, suppressed tokens, and begin_suppress at the first new position get -inf. Last, a forced
// first token at the first new position and a forced end token at the last one get 0, and
// everything else -inf. Needs: log_softmax, argmax, sampling, top_k.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "reference/array.h"
#include "reference/sampling.h"

namespace vkformer::reference {

// The logits (V) of the token after `prefix`. Must return the same number every time.
using NextLogits = std::function<Result<std::vector<double>>(const std::vector<int64_t>& prefix)>;

// When n finished sequences end a search. It is at once (kYes), when a running beam of the same
// length cannot be better (kNo), or when one of any length cannot (kNever).
enum class EarlyStopping : uint8_t { kNo, kYes, kNever };

struct SearchOptions {
  int64_t max_new_tokens = 20;  // tokens, at least 1
  int64_t min_new_tokens = 0;   // tokens before which no end token may come
  int64_t num_beams = 4;        // beams, 1 to 1024; greedy_search needs none
  double length_penalty = 1.0;  // exponent of the number of new tokens
  EarlyStopping early_stopping = EarlyStopping::kNo;
  std::vector<int64_t> eos_token_ids;  // empty: always max_new_tokens
  std::vector<int64_t> bad_words_ids;  // single tokens
  std::vector<int64_t> suppress_tokens;
  std::vector<int64_t> begin_suppress_tokens;
  std::optional<int64_t> forced_bos_token_id;
  std::optional<int64_t> forced_eos_token_id;
  PenaltySettings penalties;
  int64_t groups = 1;      // of diverse_beam_search; divides num_beams
  double diversity = 0.0;  // nats
};

// A finished sequence: prompt, then new tokens, the end token included.
struct Hypothesis {
  std::vector<int64_t> ids;  // tokens
  double score = 0.0;        // sum of log-probabilities / (new tokens)^length_penalty, nats
};

// The best sequences found, best first: at most num_beams, at least one. An error if the model
// fails or gives NaN or +inf.
Result<std::vector<Hypothesis>> beam_search(const std::vector<int64_t>& prompt,
                                            const NextLogits& next_logits,
                                            const SearchOptions& options);

// The same by groups, as described above.
Result<std::vector<Hypothesis>> diverse_beam_search(const std::vector<int64_t>& prompt,
                                                    const NextLogits& next_logits,
                                                    const SearchOptions& options);

// The running and finished beams of one search, or of one group.
struct BeamGroup {
  std::vector<Hypothesis> running;   // n; scores are sums of log-probabilities
  std::vector<Hypothesis> finished;  // best first, at most n
  std::vector<size_t> parents = {};  // of each running beam: what it was before the last step
  bool active = true;                // better sequences may still be found
  bool over = false;
};

// A running beam and one more token.
struct BeamCandidate {
  size_t parent = 0;  // among the running beams
  int64_t token = 0;
  double score = 0.0;  // of the whole sequence
};

// One step of the definition: takes a group on by its K best candidates, best first. `new_tokens`
// counts those that its beams have.
void beam_step(BeamGroup& group, const std::vector<BeamCandidate>& candidates, int64_t new_tokens,
               const SearchOptions& options);

// Appends the best token until an end token or max_new_tokens. An error as in beam_search.
Result<std::vector<int64_t>> greedy_search(const std::vector<int64_t>& prompt,
                                           const NextLogits& next_logits,
                                           const SearchOptions& options);

// The score processing above for one row. `new_tokens` counts those already appended. scores (V).
void process_scores(std::span<double> scores, int64_t new_tokens, const SearchOptions& options);

}  // namespace vkformer::reference
