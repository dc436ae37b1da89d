// The three kinds of acceptance cases that `vkformer case` runs.
#pragma once

#include <string>

#include "output.h"
#include "vkformer/model.h"
#include "vkformer/operators.h"
#include "vkformer/session.h"
#include "vkformer/tensor.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

struct CaseOptions {
  std::string directory;
  std::string output;
  ModelOptions load;
  CacheFormat cache = CacheFormat::kF32;  // of generations

  std::string path(const std::string& name) const { return directory + "/" + name; }
};

// What op.json, inputs.json and the generation settings of case.json say. Apart from files and
// devices, so that hostile ones can be tried on them.
Result<OperatorCall> operator_of_case(const Json& description);
Result<Json> answer_texts(const Tokenizer& tokenizer, const Json& inputs);
Result<GenerateOptions> generation_of_case(const Json& settings);

// A model with its inputs: forward pass with every tap, and generation where case.json has it.
Result<TensorMap> answer_model_case(const Device& device, const CaseOptions& options,
                                    const Json& settings);
// Texts of a tokenizer case, as compare scripts read them.
Result<Json> answer_tokenizer_case(const CaseOptions& options);

}  // namespace vkformer::cli
