// The passes of a session by their sizes alone, before there is a session: what its memory is added
// up from, and what pipelines are made ahead for.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "model/model.h"
#include "vkformer/model.h"

namespace vkformer {

struct GenerationKey;

// The forward pass, or prompt and step of a greedy generation or one with beams. What inputs hold
// does not matter.
Result<std::vector<Graph>> sized_graphs(const ModelFamily& family,
                                        const std::vector<PackedWeight>& weights,
                                        const SessionSizes& sizes);
// Prompt and step.
Result<std::vector<Graph>> generation_graphs(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights,
                                             const GenerationKey& key);

}  // namespace vkformer
