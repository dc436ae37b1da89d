// What families with experts read from config.json in the same way.
#pragma once

#include "checkpoint/json_config.h"
#include "model/blocks/stack.h"

namespace vkformer {

// The library's defaults, and the family's own name of X.
struct ExpertDefaults {
  int64_t experts = 0;
  int64_t choices = 0;
  const char* key = "num_local_experts";
};

// X and K: the family's key of X, or one of those that other families have for it, and
// num_experts_per_tok.
Status read_expert_counts(const JsonConfig& config, const ExpertDefaults& defaults,
                          ExpertSetup& experts);

// norm_topk_prob, whose default is `fallback`.
Status read_normalize(const JsonConfig& config, bool fallback, ExpertSetup& experts);

// Which layers have experts: every decoder_sparse_step-th one, but those of mlp_only_layers.
Status read_sparse_layers(const JsonConfig& config, int64_t layers, ExpertSetup& experts);

}  // namespace vkformer
