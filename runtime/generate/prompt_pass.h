// What comes before the first step of a generation: the encoder, and the tokens of the prompts but
// for the last ones.
#pragma once

#include <optional>
#include <vector>

#include "generate/generation_step.h"
#include "recording/recorded_graph.h"

namespace vkformer {

// What one generation starts from.
struct GenerationInputs {
  FeedWords words;          // of the encoder, if there is one
  PromptPictures pictures;  // in the prompts of a decoder; without rows: none
  // Per item the tokens that the generating stack begins with, at least one.
  std::vector<std::vector<int64_t>> prompts;
  // Their places among the items of the call, of which each input has as many as sequences.
  std::vector<size_t> items;

  int64_t longest() const;  // prompt, tokens
};

// The planned pass; nothing where a generation begins with a step.
Result<std::optional<PlannedGraph>> plan_prompt(const LoadedModel& model, const StepShape& shape,
                                                const HostAccess& access);

// Tokens of item i's prompt that are fed before a step chooses one. These are all, but for what is
// longer than the recording's prompt. Steps feed the rest one by one.
size_t fed_at_once(const GenerationInputs& inputs, size_t item, const StepShape& shape);

// What the pass reads of `inputs`: the prompts without their last tokens, padded on the right.
// Where tokens of a prompt see later ones, the last tokens are included. No keys of the padding are
// stored, and families that sum a whole prompt mask it. Precondition: the pass has tokens
// (ModelFamily::prompt_tokens); else it reads inputs.words alone.
Result<FeedWords> prompt_words(const ModelFamily& family, const StepShape& shape,
                               const GenerationInputs& inputs);

}  // namespace vkformer
