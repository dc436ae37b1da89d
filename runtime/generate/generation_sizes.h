// What a generation reads, and the capacities that it is recorded for.
#pragma once

#include "generate/prompt_pass.h"
#include "vkformer/generation.h"

namespace vkformer {

// Tokens that a prompt and what is generated from it may have together.
int64_t generation_limit(const ModelFacts& facts, const GenerateOptions& options);

// The settings that come with a model.
GenerateOptions generation_defaults(const ModelFamily& family);

// Items that an input becomes: sequences that are sampled, or groups of beams.
size_t items_per_input(const GenerateOptions& options);
// Each input so often, one after the other.
Result<TensorMap> repeated_inputs(const TensorMap& inputs, int64_t times);

// Prompts and the encoder's input of a generation, one of each input however many sequences are
// wanted, and the sizes they ask for.
Result<GenerationInputs> read_single_inputs(const ModelFamily& family, const TensorMap& inputs,
                                            const GenerateOptions& options, StepShape& shape);
// The same for every sequence or beam group.
Result<GenerationInputs> read_generation_inputs(const ModelFamily& family, const TensorMap& inputs,
                                                const GenerateOptions& options, StepShape& shape);

// What the tokens of a prompt, and the positions of a cache, are rounded up to. So near sizes share
// a recording. Masked keys add exact zeros, so results do not change.
int64_t prompt_bucket(int64_t tokens, bool exact);
int64_t capacity_bucket(int64_t positions);

struct GenerationSizes {
  GenerationKey key;
  int64_t new_tokens = 0;  // at most
};

// Completes a key that has the batch, the beams and the encoder's sizes; `prompt` is the longest
// one, in tokens.
Result<GenerationSizes> generation_sizes(const ModelFacts& facts, int64_t prompt, GenerationKey key,
                                         const GenerateOptions& options);

}  // namespace vkformer
