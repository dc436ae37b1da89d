// What a caller asks of every attention of a pass, whatever its family: a softmax temperature, and
// the entropy of the probabilities. Applied to a finished graph.
#pragma once

#include "base/check.h"
#include "graph/graph.h"
#include "vkformer/session.h"

namespace vkformer {

struct AttentionRequest {
  enum class Maps : uint8_t { kDropped, kKept } maps = Maps::kKept;  // as outputs
  bool entropy = false;
  float temperature = 1.0f;

  bool operator==(const AttentionRequest&) const = default;
};

// What the options ask for, or why it makes no sense.
Result<AttentionRequest> attention_request(const RunOptions& options);

// Divides the scores of the graph's attention by the temperature. Adds its ..attention_entropy.l
// (B,H,T) to each map ..attentions.l (B,H,T,S). kUnsupported where a kind of attention has no such
// softmax.
Status apply_attention_request(Graph& graph, const AttentionRequest& request);

}  // namespace vkformer
