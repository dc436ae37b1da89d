// Checks of whole models: passes against the reference in double, and generations against a search
// that asks the reference for every next token.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/check.h"

namespace vkformer::conformance {

struct ModelCheck {
  std::string name;  // "model/gpt2/logits-f32"
  bool quick = true;
  std::function<Result<Comparison>(const Device& device)> run;
};
std::vector<ModelCheck> model_checks();

}  // namespace vkformer::conformance
