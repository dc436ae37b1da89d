// One call's inputs as jobs: groups of inputs that run together through one pass.
#pragma once

#include <vector>

#include "generate/generation_pass.h"
#include "generate/generation_sizes.h"

namespace vkformer {

struct GenerationJob {
  GenerationKey key;  // of the step that it needs
  GenerationInputs inputs;
  int64_t new_tokens = 0;  // at most
};

// Inputs whose prompts are exact or exceed the context run apart by length, so that each is
// generated as it is alone.
Result<std::vector<GenerationJob>> plan_jobs(const ModelFamily& family, CacheFormat cache,
                                             const TensorMap& inputs,
                                             const GenerateOptions& options);

// Cuts long prompts into parts (GenerationKey::part), where the model's layers lie on several
// devices. So the devices work on one prompt at the same time. Prompts with images stay whole, and
// those of a packed cache or one with a context. So do those of families that carry states, or
// whose positions depend on a prompt's length.
void cut_prompts(const LoadedModel& model, std::vector<GenerationJob>& jobs);

// Puts each of `from` where `items` says in `to`, which grows.
void scatter(Generation& from, const std::vector<size_t>& items, Generation& to);
// Of items that are sequences or beam groups of an input, the sequences of each input.
Generation by_input(Generation items, const GenerateOptions& options);

}  // namespace vkformer
