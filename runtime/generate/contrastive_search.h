// Contrastive search (Su et al. 2022, "A Contrastive Framework for Neural Text Generation").
#pragma once

#include "generate/pass_rows.h"

namespace vkformer {

// One hypothesis for each input. Every candidate's hidden state is compared with those of all
// tokens before it, so each token takes a full pass over its candidates instead of a step.
Result<Generation> contrastive_search(const ModelFamily& family, const TensorMap& inputs,
                                      const GenerateOptions& options, const RunPass& run);

}  // namespace vkformer
