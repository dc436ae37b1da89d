// Where a node stands in a model, for cutting its graphs.
#pragma once

#include <string>

#include "graph/graph.h"
#include "load/model_split.h"
#include "ops/op.h"

namespace vkformer {

// The place of node `index`. A norm right after an embedding shares its place, for one kernel may
// do both (ops/fusion.h), with other roundings than two.
inline std::string place_of_node(const Graph& graph, size_t index) {
  const Node& node = graph.nodes()[index];
  if (index == 0 || node.op != static_cast<uint16_t>(OpId::k_layer_norm)) {
    return place_of(node.label);
  }
  const Node& before = graph.nodes()[index - 1];
  const bool follows =
      before.op == static_cast<uint16_t>(OpId::k_embedding) && node.inputs[0] == before.outputs[0];
  return place_of(follows ? before.label : node.label);
}

}  // namespace vkformer
