// How many keys a group of neighboring queries visits under its score terms. It is the host's side
// of shaders/include/key_walk.glsl. A kernel that counts (AttentionAttrs::Report) is tested against
// it.
#pragma once

#include <optional>

#include "ops/score_terms.h"

namespace vkformer {

struct KeyWalkSizes {
  uint32_t batch = 1;    // B
  uint32_t heads = 1;    // H
  uint32_t queries = 1;  // T
  uint32_t keys = 1;     // S
};

// Keys that queries first ... last of head h of item b visit; `words` are those that `params` point
// into, needed only with sparse terms, and checked (check_terms).
uint64_t group_visits(const ScoreTermsParams& params, std::span<const uint32_t> words,
                      const KeyWalkSizes& sizes, std::span<const uint32_t, 4> place);

// Pairs that all groups of `rows` queries visit; nothing where sparse terms are set whose words the
// host does not have.
std::optional<double> visited_pairs(const ScoreTermsParams& params, std::span<const uint32_t> words,
                                    const KeyWalkSizes& sizes, uint32_t rows);

}  // namespace vkformer
