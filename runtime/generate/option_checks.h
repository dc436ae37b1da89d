// What is wrong with the settings of a generation, before anything is planned.
#pragma once

#include "model/model.h"
#include "vkformer/generation.h"

namespace vkformer {

// Of token ids, lengths, beams, groups, sequences, token choice and context.
Status check_generate_options(const ModelFacts& facts, const GenerateOptions& options);

}  // namespace vkformer
