// The passes of a session by their sizes alone, before there is a session. The session's memory is
// added up from them, and pipelines are made ahead for them.
#pragma once

#include <optional>
#include <vector>

#include "generate/generation_step.h"
#include "model/model.h"
#include "recording/pass_memory.h"
#include "session/forward_pass.h"
#include "vkformer/model.h"

namespace vkformer {

// A graph, and what the host does with its tensors.
struct SizedGraph {
  Graph graph;
  HostAccess host;
};

// What a session looks its recordings up by: of passes, or of a generation.
struct SizedPasses {
  std::optional<ForwardKey> forward;
  std::optional<ForwardKey> second;  // of ModelFacts::Passes::kTwo, where its frames are given
  std::optional<GenerationKey> step;
};
Result<SizedPasses> sized_passes(const ModelFamily& family, const SessionSizes& sizes,
                                 Lengths lengths);

// The forward pass and a second one, or prompt and step of a greedy generation or one with beams.
// What inputs hold does not matter.
Result<std::vector<SizedGraph>> sized_graphs(const ModelFamily& family,
                                             const std::vector<PackedWeight>& weights,
                                             const SessionSizes& sizes,
                                             Lengths lengths = Lengths::kGiven);
// Prompt and step.
Result<std::vector<SizedGraph>> generation_graphs(const ModelFamily& family,
                                                  const std::vector<PackedWeight>& weights,
                                                  const GenerationKey& key);

}  // namespace vkformer
