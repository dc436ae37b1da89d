// sampling: which tokens may be sampled next, and how likely each is, in double.
//
// penalised_scores, of logits x over a history h of which the first `prompt` tokens were given:
//   x[t] += sum of the biases of rules whose tokens end in t and whose others end h
//   t in h: x[t] = x[t] < 0 ? x[t] repetition : x[t] / repetition        (Keskar et al. 2019)
//   t generated n > 0 times: x[t] -= presence + n frequency
//   the last no_repeat - 1 tokens of h came before, followed by t: x[t] = -inf
//
// draw_probabilities, of scores x, one after the other, each on what is left:
//   temperature x / temperature; 0 leaves the best token
//   top_k       the k largest, and what ties with the smallest of them
//   top_p       the fewest of the largest whose probabilities reach top_p; ties by ascending token
//   min_p       those of at least min_p times the largest probability
//   typical_p   the fewest whose surprise -ln p is nearest to the entropy and whose probabilities
//               reach typical_p, and what ties with the last of them (Meister et al. 2023)
// Needs: nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkformer::reference {

struct ScoreRule {
  std::vector<int64_t> tokens;  // at least one
  double bias = 0;
};

struct PenaltySettings {
  double repetition = 1;
  double presence = 0;
  double frequency = 0;
  int64_t no_repeat = 0;  // tokens; 0: off
  std::vector<ScoreRule> rules;
};

struct DrawSettings {
  double temperature = 1;
  int64_t top_k = 0;  // 0: all
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;
};

// logits (V) -> scores (V)
std::vector<double> penalised_scores(std::span<const double> logits,
                                     std::span<const int64_t> history, size_t prompt,
                                     const PenaltySettings& settings);

// scores (V), at least one above -inf -> probabilities (V)
std::vector<double> draw_probabilities(std::span<const double> scores,
                                       const DrawSettings& settings);

}  // namespace vkformer::reference
