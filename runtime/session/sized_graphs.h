// The passes of a session by their sizes alone, before there is a session: what its memory is added
// up from, and what pipelines are made ahead for.
#pragma once

#include <vector>

#include "model/model.h"
#include "recording/pass_memory.h"
#include "vkformer/model.h"

namespace vkformer {

struct GenerationKey;

// A graph, and what the host does with its tensors.
struct SizedGraph {
  Graph graph;
  HostAccess host;
};

// The forward pass, or prompt and step of a greedy generation or one with beams. What inputs hold
// does not matter.
Result<std::vector<SizedGraph>> sized_graphs(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights,
                                             const SessionSizes& sizes);
// Prompt and step.
Result<std::vector<SizedGraph>> generation_graphs(const ModelFamily& family,
                                                  const std::vector<PackedWeight>& weights,
                                                  const GenerationKey& key);

}  // namespace vkformer
