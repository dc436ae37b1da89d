// The settings by which tokens are chosen, checked and as the words of the choice buffer
// (params/sampling.h).
#pragma once

#include <span>
#include <vector>

#include "ops/token_scores.h"
#include "vkformer/generation.h"
#include "vkformer/result.h"

namespace vkformer {

// The kernel of a step from which on grammars mask tokens.
inline constexpr KernelId kScoresKernel = KernelId::token_scores_row__f32_u32_f32;

// Whether logits are processed beyond what token_candidates does: tokens are sampled, cost
// something or keep to a grammar.
bool needs_choice(const GenerateOptions& options);

// An error unless a vocabulary of `vocab` tokens has the token of the option [name].
Status check_token_id(const char* name, int64_t token, int64_t vocab);

// Whether the tokens that came before count for the next one: penalties, or rules of several
// tokens.
bool looks_back(const PenaltyOptions& penalties);

// An error unless the settings of choice make sense for a vocabulary of `vocab` tokens.
Status check_choice(const GenerateOptions& options, int64_t vocab);

// Biases and bad words as rules.
std::vector<TokenRule> token_rules(const PenaltyOptions& penalties);

// A row's settings; `stream` tells apart the sequences of one input. Rules begin at word `rules`
// of the choice buffer; 0: none.
ChoiceRow choice_row(const GenerateOptions& options, uint32_t stream, uint32_t rules);

}  // namespace vkformer
