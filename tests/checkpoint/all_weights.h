// The numbers of a whole checkpoint, for tests that compare two of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "weights/read_floats.h"

namespace vkformer::test {

// Of every tensor, by name.
inline std::map<std::string, std::vector<float>> all_weights(const Checkpoint& checkpoint) {
  std::map<std::string, std::vector<float>> weights;
  for (const std::string& name : checkpoint.names()) {
    const TensorView& view = *checkpoint.find(name);
    std::vector<float> values(static_cast<size_t>(element_count(view.shape)));
    read_elements(view, 0, 1, values);
    weights[name] = std::move(values);
  }
  return weights;
}

}  // namespace vkformer::test
