// A folder for one failed check, with all that shows it elsewhere.
#pragma once

#include <string>

#include "conformance/check.h"

namespace vkformer::conformance {

struct Failure {
  const std::string& folder;  // of all failures
  const Device& device;
  const ConformanceCheck& check;
  const CheckCase& made;
  const TensorMap& outputs;  // empty where it did not run
};
// Writes the check, inputs, what was expected and what came, the plan, and the kernels' SPIR-V.
Status write_failure(const Failure& failure);

Status write_file(const std::string& path, std::string_view content);

}  // namespace vkformer::conformance
