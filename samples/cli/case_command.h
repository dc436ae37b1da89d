// The three kinds of acceptance cases that `vkformer case` runs.
#pragma once

#include <string>

#include "command_line.h"
#include "vkformer/tensor.h"

namespace vkformer::cli {

struct CaseOptions {
  std::string directory;
  std::string output;
  ModelOptions load;
  std::string cache = "f32";  // of generations

  std::string path(const std::string& name) const { return directory + "/" + name; }
};

// A model with its inputs: forward pass with every tap, and generation where case.json has it.
Result<TensorMap> answer_model_case(const Device& device, const CaseOptions& options,
                                    const Json& settings);
// Texts of a tokenizer case, as compare scripts read them.
Result<Json> answer_tokenizer_case(const CaseOptions& options);

}  // namespace vkformer::cli
