// Log-probabilities of given continuations.
#pragma once

#include "generate/pass_rows.h"

namespace vkformer {

// For each input, the log-probability of every token of its continuation after the tokens before
// it.
Result<std::vector<std::vector<float>>> score_continuations(
    const ModelFamily& family, const TensorMap& inputs,
    const std::vector<std::vector<int64_t>>& continuations, const RunPass& run);

}  // namespace vkformer
