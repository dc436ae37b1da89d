// Which known family an unknown model resembles, by the names of its tensors.
#pragma once

#include <string>
#include <vector>

namespace vkformer {

// A known family, and the tensors that it would read from the model's files.
struct FamilyTensors {
  std::string family;
  std::vector<std::string> names;
  std::vector<std::string> ignored;  // as WeightTable::ignored
};

// A sentence that names the family whose tensors are most like the model's. It names the model's
// tensors that this family does not know, and those that it needs and the model lacks. Layers count
// as one: the numbers in names are shown as "*". Without a tensor in common it names the family of
// the most similar model_type; empty if none is similar.
std::string nearest_family_text(const std::string& model_type,
                                const std::vector<FamilyTensors>& known,
                                const std::vector<std::string>& tensors);

}  // namespace vkformer
