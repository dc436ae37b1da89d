// token_scores: processes a decoding step's logits before a token is sampled or chosen. It applies
// rules on tokens (biases, also after other tokens), penalties on tokens that came before, and the
// rule that no n tokens come twice. It applies suppressed, premature and forced tokens, and those
// that a grammar allows. The order is that of Hugging Face's processors. Part of a decoding step.
//
//   logits (R, V), choice (params/sampling.h) -> scores (R, V)
#pragma once

#include <span>
#include <vector>

#include "ops/token_candidates.h"
#include "params/sampling.h"

namespace vkformer {

// Adds a bias to the score of the last token wherever the others come right before it. -infinity
// forbids it.
struct TokenRule {
  std::vector<int64_t> tokens;  // at least one
  float bias = 0;
};

// Words of the choice buffer, with `rule_words` words of rule lists.
uint64_t choice_words(const SearchParams& params, uint64_t rule_words);
// Words from its start.
uint64_t choice_suppress_at(const SearchParams& params);
uint64_t choice_allowed_at(const SearchParams& params, uint64_t row);
uint64_t choice_rules_at(const SearchParams& params);
// A list of rules, as params/sampling.h has it.
std::vector<uint32_t> rule_list(std::span<const TokenRule> rules);

Result<TensorDesc> check_token_scores(const TensorDesc& logits, const SearchParams& params);
Result<TensorId> add_token_scores(Graph& graph, TensorId logits, const SearchTensors& search,
                                  ScoresFrom from);
Status lower_token_scores(LowerContext& context, const Node& node);

}  // namespace vkformer
