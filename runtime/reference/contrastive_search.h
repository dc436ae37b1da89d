// contrastive_search: of the k likeliest tokens v with probabilities p the one with the largest
//
//   (1 - a) p - a max over j of cos(h(v), h(x_j))
//
// where h are the last layer's states, of v and of all tokens x_j before it (Su et al. 2022, "A
// Contrastive Framework for Neural Text Generation"). Ties go to the likelier token.
// Needs: log_softmax, top_k.
#pragma once

#include <functional>
#include <vector>

#include "vkformer/result.h"

namespace vkformer::reference {

// Of a prefix: the logits (V) of the next token, and the states (T,D) of the prefix.
struct PrefixStates {
  std::vector<double> logits;
  std::vector<std::vector<double>> hidden;
};
using StatesOf = std::function<Result<PrefixStates>(const std::vector<int64_t>& prefix)>;

struct ContrastiveOptions {
  int64_t max_new_tokens = 20;  // tokens
  int64_t candidates = 4;       // k
  double contrast = 0.6;        // a
  std::vector<int64_t> eos_token_ids;
};

// The prompt with its continuation. An error if the model fails.
Result<std::vector<int64_t>> contrastive_search(const std::vector<int64_t>& prompt,
                                                const StatesOf& states,
                                                const ContrastiveOptions& options);

}  // namespace vkformer::reference
