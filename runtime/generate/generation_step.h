// A decoding step with the choice of its tokens, as a graph: what all ways to generate record.
#pragma once

#include <cstdint>
#include <string>

#include "model/model.h"
#include "ops/token_sample.h"
#include "recording/pass_memory.h"

namespace vkformer {

// What a step is recorded for; settings of a run are written, not recorded.
struct GenerationKey {
  StepShape shape;
  uint32_t candidates = 1;  // K
  // How a step ends.
  //   kPlain         the GPU takes the best tokens and writes the next step's input
  //   kScored        the same, after token_scores, and token_sample where there are no beams
  //   kSampledBeams  the same, with beams that are sampled
  //   kSlots         the GPU chooses a token for every slot; the host feeds the next step
  //   kHost          the host chooses by logits (R, V) and last_hidden_state (R, D)
  enum class Choice : uint8_t {
    kPlain,
    kScored,
    kSampledBeams,
    kSlots,
    kHost
  } choice = Choice::kPlain;
  uint32_t rule_words = 0;  // of the choice buffer's rules, at most
  SampleFilters filters;    // that its rows may have, where tokens are sampled
  // Items that are beam groups of one search, and candidates of an item that its search looks at;
  // 0: all K.
  uint32_t groups = 1;
  uint32_t picks = 0;
  // Of passes that run beside each other, on a model that is split: which.
  uint32_t lane = 0;
  // Tokens of the parts that prompts are cut into, on a model whose layers lie on several devices.
  // 0: prompts are one pass.
  int64_t part = 0;

  bool operator==(const GenerationKey&) const = default;
  // One row an item: no search, whose hypotheses would have to be kept.
  bool single() const { return shape.beams == 1 && groups == 1; }
};

SearchParams search_params(const ModelFamily& family, const GenerationKey& key);

// A decoding step of the family, with the choice of its tokens.
Status build_generation_step(ModelBuilder& builder, const ModelFamily& family,
                             const GenerationKey& key);

// The pass over prompts before such steps, which may have no node.
Status build_generation_prompt(ModelBuilder& builder, const ModelFamily& family,
                               const StepShape& shape);

// A part of such prompts, GenerationKey::part tokens at any positions of any rows of the cache, up
// to the last layer's keys and values. It is a step of slots that chooses nothing, and reads its
// own state and tokens, kPartState and kPartIds.
inline constexpr const char* kPartState = "part_state";
inline constexpr const char* kPartIds = "part_ids";
Status build_generation_part(ModelBuilder& builder, const ModelFamily& family,
                             const GenerationKey& key);

// What the host does with the tensors that steps and prompts share; the caches are the GPU's own.
HostAccess step_access(const GenerationKey& key);

}  // namespace vkformer
