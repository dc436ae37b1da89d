// Contrastive search (Su et al. 2022, "A Contrastive Framework for Neural Text Generation").
#pragma once

#include <functional>
#include <memory>

#include "generate/decode_step.h"
#include "generate/generation_jobs.h"
#include "generate/pass_rows.h"

namespace vkformer {

// The recorded step for a key, from the session's cache.
using StepForKey = std::function<Result<std::shared_ptr<DecodeStep>>(const GenerationKey& key)>;

// What a search takes from its session.
struct ContrastiveCall {
  const ModelFamily& family;
  CacheFormat cache = CacheFormat::kF32;
  RunPass run;          // full passes, for the prompts
  StepForKey step_for;  // recorded steps, for the candidates
};

// One hypothesis for each input. A step feeds the candidates for a token and hands out their hidden
// states, which the host compares with those of all tokens before.
Result<Generation> contrastive_search(const ContrastiveCall& call, const TensorMap& inputs,
                                      const GenerateOptions& options, GenerationCounters& counters);

}  // namespace vkformer
